/**
 * The first bytes of files of each type: PNG, section 5.2 of its specification; JPEG, the marker
 * SOI and the next one.
 */
const FIRST_BYTES: ReadonlyMap<string, readonly number[]> = new Map([
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
]);

/**
 * Returns whether the first bytes of a file match the type that it claims; false for any other
 * type.
 */
export function isOfType(data: Uint8Array, mimeType: string): boolean {
  return FIRST_BYTES.get(mimeType)?.every((byte, index) => data[index] === byte) ?? false;
}
