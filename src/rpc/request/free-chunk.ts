/**
 * Releases the memory of a piece of a body after it was copied: garbage
 * collection may come late, and until then the whole body would exist twice.
 * Pieces of HTTP/1 have memory of their own; those of HTTP/2 are parts of a
 * buffer that Node goes on reading.
 *
 * @param chunk not to be used afterwards
 */
export function freeChunk({ httpVersionMajor }: { httpVersionMajor: number }, chunk: Uint8Array): void {
  if (httpVersionMajor === 1) releaseBuffer(chunk);
}

/**
 * Releases the memory of bytes at once, unless they are a part of other memory.
 *
 * @param bytes not to be used afterwards
 */
export function releaseBuffer(bytes: Uint8Array): void {
  if (bytes.byteLength === bytes.buffer.byteLength) (bytes.buffer as ArrayBuffer).transfer(0);
}

/**
 * Joins pieces and frees each as it is copied: otherwise all of them and the
 * result would exist at once.
 *
 * @param lengthBytes of all pieces
 */
export function join(
  pieces: readonly Uint8Array[],
  lengthBytes: number,
  free: (piece: Uint8Array) => void,
): Uint8Array<ArrayBuffer> {
  // The system allocates memory as bytes are written to it.
  const whole = new Uint8Array(lengthBytes);
  let filled = 0;
  for (const piece of pieces) {
    whole.set(piece, filled);
    filled += piece.length;
    free(piece);
  }
  return whole;
}
