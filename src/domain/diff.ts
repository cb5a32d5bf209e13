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
  const changes: Record<string, [Json, Json]> = {};
  collect("", before ? JSON.parse(before) : {}, after ? JSON.parse(after) : {}, changes);
  return changes;
}

function collect(path: string, before: Json, after: Json, changes: Record<string, [Json, Json]>): void {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      collect(path ? `${path}.${key}` : key, before[key] ?? null, after[key] ?? null, changes);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    changes[path] = [before, after];
  }
}

function isObject(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
