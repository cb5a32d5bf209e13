/** A JSON object whose values are not checked yet. */
export type UncheckedObject = Readonly<Record<string, unknown>>;

/** Returns whether a JSON value is an object: neither null nor an array. */
export function isJsonObject(value: unknown): value is UncheckedObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
