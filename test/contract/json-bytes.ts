import type { JsonValue } from "@bufbuild/protobuf";

const NOT_ASCII = /[^\0-\x7f]/g;

/**
 * Returns the size of a value as JSON in UTF-8 without white space. Parts that are the same object
 * are measured once and added as often as they appear, so that texts longer than Node can hold have
 * a size too.
 */
export const jsonBytes = byteCounter((text) => Buffer.byteLength(JSON.stringify(text)));

/** Returns the size in ASCII alone, with each other UTF-16 unit as an escape. */
export const asciiJsonBytes = byteCounter((text) => asciiJson(text).length);

/** Returns a value as JSON in ASCII alone, which is Python's default. */
export function asciiJson(value: JsonValue): string {
  return JSON.stringify(value).replace(
    NOT_ASCII,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function byteCounter(textBytes: (text: string) => number): (value: JsonValue) => number {
  const counted = new WeakMap<object, number>();
  const countedTexts = new Map<string, number>();
  const bytesOf = (value: JsonValue): number => {
    if (typeof value === "string") {
      const known = countedTexts.get(value) ?? textBytes(value);
      countedTexts.set(value, known);
      return known;
    }
    if (typeof value !== "object" || value === null) return JSON.stringify(value).length;
    const known = counted.get(value);
    if (known !== undefined) return known;
    const members = Array.isArray(value)
      ? value.map(bytesOf)
      : Object.entries(value).map(([name, each]) => bytesOf(name) + 1 + bytesOf(each));
    const commas = Math.max(0, members.length - 1);
    const bytes = members.reduce((total, each) => total + each, 2 + commas);
    counted.set(value, bytes);
    return bytes;
  };
  return bytesOf;
}
