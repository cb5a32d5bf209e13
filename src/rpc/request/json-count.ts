import type { RequestBounds } from "./request-bounds.ts";
import { tooComplex } from "./too-complex.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Counts the parts of a JSON text, in one pass over its bytes and without
 * building anything: a list of a million empty objects takes 3 MB of text and a
 * hundred times as much once it is parsed. Invalid JSON is counted by its signs,
 * and left for the parser to refuse.
 *
 * @throws ConnectError BODY_TOO_COMPLEX at the first sign past the limit
 */
export function countJson(
  bytes: Uint8Array,
  { parts, keys, depth }: Pick<RequestBounds, "parts" | "keys" | "depth">,
): void {
  let open = 0;
  let partCount = 0;
  let keyCount = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfText(bytes, at);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++open > depth) throw tooComplex("depth", depth);
        if (++partCount > parts) throw tooComplex("parts", parts);
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        open--;
        break;
      case COMMA:
        if (++partCount > parts) throw tooComplex("parts", parts);
        break;
      case COLON:
        if (++keyCount > keys) throw tooComplex("keys", keys);
        break;
    }
  }
}

/**
 * Returns the index of the closing quote of the text that begins at a quote; at
 * least the length of the bytes when it has none.
 */
export function endOfText(bytes: Uint8Array, begin: number): number {
  let at = begin + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
