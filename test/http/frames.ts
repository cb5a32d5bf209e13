/** HTTP/2 frames as bytes, for clients that do what no library allows (RFC 9113, section 6). */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** The minimum that a client must send first: the preface and empty SETTINGS. */
export const GREETING = Buffer.concat([PREFACE, frame(4, 0, 0)]);

const END_STREAM = 1;
const END_HEADERS = 4;

/** Returns a POST with complete headers whose body follows. */
export function postFrame(path: string, stream = 1): Buffer {
  return headersFrame("POST", path, END_HEADERS, stream);
}

/** @param more further headers, which may repeat each other */
export function getFrame(path: string, stream = 1, more: readonly Field[] = []): Buffer {
  return headersFrame("GET", path, END_HEADERS | END_STREAM, stream, more);
}

export function dataFrame(text: string, isLast = false): Buffer {
  return frame(0, isLast ? END_STREAM : 0, 1, Buffer.from(text));
}

export function resetFrame(code: number, stream = 1): Buffer {
  return frame(3, 0, stream, Buffer.from([0, 0, 0, code]));
}

export function frame(type: number, flags: number, stream: number, content = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

type Field = readonly [name: string, value: string];

function headersFrame(
  method: string,
  path: string,
  flags: number,
  stream: number,
  more: readonly Field[] = [],
): Buffer {
  const fields = { ":method": method, ":scheme": "http", ":path": path, ":authority": "a" };
  // Literal fields without indexing: a zero, then name and value with their lengths.
  const block = [...Object.entries(fields), ...more].flatMap(([name, value]) => [
    Buffer.from([0]),
    literal(name),
    literal(value),
  ]);
  return frame(1, flags, stream, Buffer.concat(block));
}

function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}
