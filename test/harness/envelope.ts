/** Frames one message of a stream. */
export function envelope(data: Uint8Array, flags = 0): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/** Reads a body to its end. */
export async function whole(body: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Returns the last envelope of a stream. */
export function last(body: Buffer): { flags: number; data: Buffer } {
  for (let at = 0; ; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    if (end >= body.length) return { flags: body[at] ?? 0, data: body.subarray(at + 5) };
    at = end;
  }
}
