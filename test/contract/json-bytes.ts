import type { JsonValue } from "@bufbuild/protobuf";

const counted = new WeakMap<object, number>();
const countedTexts = new Map<string, number>();

/**
 * Bytes of a value as JSON in UTF-8 without white space. Parts that are the
 * same object are counted once and added as often as they appear, so that a
 * text longer than Node can hold still has a size.
 */
export function jsonBytes(value: JsonValue): number {
  if (typeof value === "string") {
    const known = countedTexts.get(value) ?? Buffer.byteLength(JSON.stringify(value));
    countedTexts.set(value, known);
    return known;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value).length;
  const known = counted.get(value);
  if (known !== undefined) return known;
  const members = Array.isArray(value)
    ? value.map(jsonBytes)
    : Object.entries(value).map(([name, each]) => jsonBytes(name) + 1 + jsonBytes(each));
  const commas = Math.max(0, members.length - 1);
  const bytes = members.reduce((total, each) => total + each, 2 + commas);
  counted.set(value, bytes);
  return bytes;
}
