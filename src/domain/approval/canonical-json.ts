import type { JsonValue } from "@bufbuild/protobuf";

/**
 * Returns the canonical text of JSON (RFC 8785): keys sorted by their UTF-16 code units, nothing
 * between the tokens, and strings and numbers as ECMAScript writes them.
 */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(",")}}`;
}
