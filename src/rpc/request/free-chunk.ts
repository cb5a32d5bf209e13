/**
 * Gives the memory of a piece of a body back, once it was copied: a collection
 * may be a long time coming, and by then the whole body would be there twice.
 * Pieces of HTTP/1 have memory of their own; those of HTTP/2 are parts of a
 * buffer that Node goes on reading.
 *
 * @param chunk not to be used afterwards
 */
export function freeChunk({ httpVersionMajor }: { httpVersionMajor: number }, chunk: Uint8Array): void {
  const isOwn = httpVersionMajor === 1 && chunk.byteLength === chunk.buffer.byteLength;
  if (isOwn) (chunk.buffer as ArrayBuffer).transfer(0);
}
