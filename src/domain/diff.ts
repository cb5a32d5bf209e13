type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * What changed between two JSON texts: dotted path to [before, after], with
 * null for what is absent. Lists are compared as wholes: an element's place
 * says little to a reader of the audit log.
 */
export function diffJson(
  before: string | undefined,
  after: string | undefined,
): Record<string, [Json, Json]> {
  const changes = new Map<string, [Json, Json]>();
  collect("", before ? JSON.parse(before) : {}, after ? JSON.parse(after) : {}, changes);
  return Object.fromEntries(changes);
}

function collect(path: string, before: Json, after: Json, changes: Map<string, [Json, Json]>): void {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      collect(path ? `${path}.${key}` : key, own(before, key), own(after, key), changes);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    changes.set(path, [before, after]);
  }
}

/** Keys of maps are the caller's words, and may be names that every object inherits. */
function own(object: { [key: string]: Json }, key: string): Json {
  return Object.hasOwn(object, key) ? (object[key] ?? null) : null;
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
