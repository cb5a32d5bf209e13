/**
 * Gives the memory of a piece of a body back, once it was copied: a collection
 * may be a long time coming, and by then the whole body would be there twice.
 * Pieces of HTTP/1 have memory of their own; those of HTTP/2 are parts of a
 * buffer that Node goes on reading.
 *
 * @param chunk not to be used afterwards
 */
export function freeChunk({ httpVersionMajor }: { httpVersionMajor: number }, chunk: Uint8Array): void {
  if (httpVersionMajor === 1) freeWhole(chunk);
}

/**
 * Gives the memory of bytes back at once, unless they are a part of other memory.
 *
 * @param bytes not to be used afterwards
 */
export function freeWhole(bytes: Uint8Array): void {
  if (bytes.byteLength === bytes.buffer.byteLength) (bytes.buffer as ArrayBuffer).transfer(0);
}

/**
 * Puts pieces together and frees each as it is copied: otherwise all of them
 * and the whole would be there at once.
 *
 * @param lengthBytes of all pieces
 */
export function join(
  pieces: readonly Uint8Array[],
  lengthBytes: number,
  free: (piece: Uint8Array) => void,
): Uint8Array<ArrayBuffer> {
  // The system gives its memory as bytes are written to it.
  const whole = new Uint8Array(lengthBytes);
  let filled = 0;
  for (const piece of pieces) {
    whole.set(piece, filled);
    filled += piece.length;
    free(piece);
  }
  return whole;
}
