import { isAscii } from "node:buffer";
import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { exchangeBytes } from "./byte-fields.ts";
import { endOfText } from "./json-count.ts";
import { CHARACTER_BYTES, MAX_BODY_BYTES } from "./request-bounds.ts";
import { tooComplex } from "./too-complex.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BLANK = 0x20;
const PADDING = 0x3d;

/** Texts up to this many characters are left to the parser. */
const SHORT_CHARACTERS = 64 * 1024;

/**
 * Parts of a mark: bytes that nobody can have put into a body, and the index of a
 * text. Whole groups of base64.
 */
const NONCE_BYTES = 24;
const INDEX_BYTES = 3;

/** Characters that are decoded at once: whole groups of base64. */
const PIECE = 64 * 1024;

/** Long texts that were removed from a JSON body. */
export interface LongTexts {
  /** The body with a mark instead of each text. */
  readonly rest: Uint8Array;
  /**
   * Puts the decoded bytes of the removed texts into the `bytes` fields of the
   * message that was parsed from the rest. They are decoded in place, without
   * allocating memory of their size.
   *
   * @throws ConnectError invalid_argument for invalid base64
   */
  putBack(schema: DescMessage, message: MessageShape<DescMessage>): void;
}

/**
 * Removes long texts from a JSON body: those that only a field of `bytes` can
 * hold. The parser would hold ten images of 4 MiB five times: as the body, its
 * text, the texts in it, bytes, and the result.
 *
 * @param textCharacters of the longest text that another field can hold; marks
 *   are longer, so that a text that is too long for its field is refused as such
 * @throws ConnectError BODY_TOO_COMPLEX when too much is left
 */
export function takeLongTexts(bytes: Uint8Array, textCharacters: number): LongTexts {
  const characters = Math.max(textCharacters, SHORT_CHARACTERS);
  const marks = new Marks(characters);
  const texts: Uint8Array[] = [];
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  const keep = (part: Uint8Array): void => {
    keptBytes += part.length;
    if (keptBytes > MAX_BODY_BYTES) throw tooComplex("other_bytes", MAX_BODY_BYTES);
    kept.push(part);
  };
  let from = 0;
  for (let quote = bytes.indexOf(QUOTE); quote !== -1; ) {
    const begin = quote + 1;
    const end = endOfText(bytes, quote);
    const text = bytes.subarray(begin, end);
    if (end < bytes.length && isLonger(text, characters)) {
      keep(bytes.subarray(from, begin));
      keep(marks.of(texts.length));
      texts.push(text);
      from = end;
    }
    quote = bytes.indexOf(QUOTE, end + 1);
  }
  keep(bytes.subarray(from));
  return {
    rest: texts.length === 0 ? bytes : Buffer.concat(kept),
    putBack(schema, message) {
      if (texts.length === 0) return;
      exchangeBytes(schema, message, (value, field) => {
        const text = texts[marks.indexOf(value)];
        return text ? decoded(text, field) : value;
      });
    },
  };
}

/** Returns whether a text has more characters than this, in whatever form it is written. */
function isLonger(text: Uint8Array, characters: number): boolean {
  if (text.length <= characters) return false;
  return text.length > characters * CHARACTER_BYTES || (isAscii(text) && !text.includes(BACKSLASH));
}

/** Texts in base64 that replace others. */
class Marks {
  readonly #nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  readonly #filler: Uint8Array;

  constructor(characters: number) {
    this.#filler = Buffer.alloc(Math.ceil((characters + 1) / 4) * 4, "A");
  }

  of(index: number): Uint8Array {
    const begin = Buffer.alloc(NONCE_BYTES + INDEX_BYTES);
    begin.set(this.#nonce);
    begin.writeUIntBE(index, NONCE_BYTES, INDEX_BYTES);
    return Buffer.concat([Buffer.from(begin.toString("base64")), this.#filler]);
  }

  /** Returns the index of the text whose mark has these bytes; -1 when there is none. */
  indexOf(bytes: Uint8Array): number {
    const begin = Buffer.from(
      bytes.buffer,
      bytes.byteOffset,
      Math.min(bytes.length, NONCE_BYTES + INDEX_BYTES),
    );
    const isMark = begin.length > NONCE_BYTES && begin.subarray(0, NONCE_BYTES).equals(this.#nonce);
    return isMark ? begin.readUIntBE(NONCE_BYTES, INDEX_BYTES) : -1;
  }
}

/** Decodes base64 in place. */
function decoded(text: Uint8Array, field: DescField): Uint8Array {
  try {
    if (!isPlainBase64(text)) return base64Decode(JSON.parse(`"${latin1(text)}"`));
    let filled = 0;
    for (let at = 0; at < text.length; at += PIECE) {
      const piece = base64Decode(latin1(text.subarray(at, at + PIECE)));
      text.set(piece, filled);
      filled += piece.length;
    }
    return text.subarray(0, filled);
  } catch (error) {
    // In the parser's words.
    const message = `cannot decode ${field} from JSON: ${(error as Error).message}`;
    throw new ConnectError(message, Code.InvalidArgument);
  }
}

/** Returns whether a text is nothing but whole groups up to its end, so that it can be decoded in pieces. */
function isPlainBase64(text: Uint8Array): boolean {
  const padding = text.indexOf(PADDING);
  return (padding === -1 || padding >= text.length - 2) && !text.includes(BACKSLASH) && !text.includes(BLANK);
}

function latin1(text: Uint8Array): string {
  return Buffer.from(text.buffer, text.byteOffset, text.length).toString("latin1");
}
