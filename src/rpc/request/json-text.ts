import { isAscii } from "node:buffer";

/** Escapes in the order in which they are tried: both halves of a character, one half alone, any other. */
const ESCAPES =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./gs;
const HALF_ESCAPE = /\\u[dD][89a-fA-F]/;
const PAST_FFFF = /[\ud800-\udfff]/;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Returns the text of a JSON body; an empty one is `{}`. Broken UTF-8 is refused,
 * not replaced by question marks, and so is an escape such as `\ud800` that is
 * half a character: no stored text and no gRPC status could hold it.
 *
 * @throws Error whose message can be sent in every protocol
 */
export function readJsonText(data: Uint8Array): string {
  // Many clients send no bytes at all for a request without fields.
  if (data.length === 0) return "{}";
  // 56 MB of images in base64 take 34 ms this way, and 86 ms through the decoder.
  const isPlain = isAscii(data);
  const text = isPlain ? bufferOf(data).toString("latin1") : utf8.decode(data);
  if (HALF_ESCAPE.test(text)) requireWholeSurrogates(text);
  // Parsed twice, as the parser quotes some letters around an error and may cut one in two.
  if (!isPlain && PAST_FFFF.test(text)) requireValidJson(text);
  return text;
}

function bufferOf(data: Uint8Array): Buffer {
  return data instanceof Buffer ? data : Buffer.from(data.buffer, data.byteOffset, data.length);
}

function requireWholeSurrogates(text: string): void {
  for (const [, half] of text.matchAll(ESCAPES)) {
    if (half) throw new Error(`the escape ${half} is half a character without its other half`);
  }
}

function requireValidJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error((error as Error).message.toWellFormed());
  }
}
