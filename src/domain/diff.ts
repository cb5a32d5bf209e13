import type { JsonValue } from "@bufbuild/protobuf";
import { isJsonObject } from "./json-object.ts";

/** A read-only JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** What changed at a dotted path. */
type PathChange = [path: string, beforeAndAfter: [JsonValue, JsonValue]];

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
): Record<string, [JsonValue, JsonValue]> {
  const changes: PathChange[] = [];
  collect("", parseSource(before) as JsonValue, parseSource(after) as JsonValue, changes);
  return Object.fromEntries(changes);
}

/** Returns the object of a source; an empty one for an absent or empty source. */
export function parseSource(source: JsonSource | undefined): JsonObject {
  if (typeof source === "string") return source ? JSON.parse(source) : {};
  return source ?? {};
}

function collect(path: string, before: JsonValue, after: JsonValue, changes: PathChange[]): void {
  if (isJsonObject(before) && isJsonObject(after)) {
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

function differ(before: JsonValue, after: JsonValue): boolean {
  const isPlain = (value: JsonValue) => typeof value !== "object" || value === null;
  if (isPlain(before) || isPlain(after)) return before !== after;
  if (Array.isArray(before) && Array.isArray(after) && before.length !== after.length) return true;
  return JSON.stringify(before) !== JSON.stringify(after);
}

/**
 * Returns an own property, or null. Keys of maps are chosen by callers, and may be names that every
 * object inherits.
 */
function ownValue(object: JsonObject, key: string): JsonValue {
  return Object.hasOwn(object, key) ? (object[key] ?? null) : null;
}
