/**
 * Encodes texts for the engine, which stores every text except those with U+0000, which callers may write into
 * descriptions and annotations. That character is stored as three characters of the private use area, and so are those
 * three themselves. Equal texts stay equal, and substrings are still found, since nothing else begins with the first
 * of the three.
 */
const CODES: readonly (readonly [meant: string, stored: string])[] = [
  ["\0", "\uE0FF\uE0FE\uE0FE"],
  ["\uE0FF", "\uE0FF\uE0FE\uE0FD"],
  ["\uE0FE", "\uE0FF\uE0FD\uE0FE"],
  ["\uE0FD", "\uE0FF\uE0FD\uE0FD"],
];
const STORED = new Map(CODES);
const MEANT = new Map(CODES.map(([meant, stored]) => [stored, meant]));

const ESCAPED = /[\0\uE0FD-\uE0FF]/;
const EACH_ESCAPED = /[\0\uE0FD-\uE0FF]/g;
const EACH_CODE = /\uE0FF[\uE0FD\uE0FE]{2}/g;

/** Returns a value as the engine stores it. */
export function toStored(value: unknown): unknown {
  if (typeof value !== "string" || !ESCAPED.test(value)) return value;
  return value.replace(EACH_ESCAPED, (each) => STORED.get(each) ?? each);
}

/** Returns the original of a text that {@link toStored} encoded. */
export function fromStored(text: string): string {
  return text.includes("\uE0FF") ? text.replace(EACH_CODE, (code) => MEANT.get(code) ?? code) : text;
}
