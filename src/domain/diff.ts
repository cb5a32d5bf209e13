export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A read-only JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** What changed at a dotted path. */
type PathChange = [path: string, beforeAndAfter: [Json, Json]];

/** A JSON object, as text or parsed. */
export type JsonSource = string | JsonObject;

/**
 * Returns the differences between two JSON objects: dotted path to [before, after], with null for
 * an absent value. Lists are compared as wholes: an element's index says little to a reader of the
 * audit log.
 */
export function diffJson(
  before: JsonSource | undefined,
  after: JsonSource | undefined,
): Record<string, [Json, Json]> {
  const changes: PathChange[] = [];
  collect("", parseSource(before) as Json, parseSource(after) as Json, changes);
  return Object.fromEntries(changes);
}

/** Returns the object of a source; an empty one for an absent or empty source. */
export function parseSource(source: JsonSource | undefined): JsonObject {
  if (typeof source === "string") return source ? JSON.parse(source) : {};
  return source ?? {};
}

function collect(path: string, before: Json, after: Json, changes: PathChange[]): void {
  if (isObject(before) && isObject(after)) {
    const at = (key: string) => (path ? `${path}.${key}` : key);
    for (const key of Object.keys(before)) {
      const [from, to] = [ownValue(before, key), ownValue(after, key)];
      // Most values are equal, and need no path.
      if (from !== to) collect(at(key), from, to, changes);
    }
    for (const key of Object.keys(after)) {
      if (!Object.hasOwn(before, key)) collect(at(key), null, ownValue(after, key), changes);
    }
  } else if (differ(before, after)) {
    changes.push([path, [before, after]]);
  }
}

function differ(before: Json, after: Json): boolean {
  const isPlain = (value: Json) => typeof value !== "object" || value === null;
  if (isPlain(before) || isPlain(after)) return before !== after;
  if (Array.isArray(before) && Array.isArray(after) && before.length !== after.length) return true;
  return JSON.stringify(before) !== JSON.stringify(after);
}

/**
 * Returns an own property, or null. Keys of maps are chosen by callers, and may be names that every
 * object inherits.
 */
function ownValue(object: { [key: string]: Json }, key: string): Json {
  return Object.hasOwn(object, key) ? (object[key] ?? null) : null;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
