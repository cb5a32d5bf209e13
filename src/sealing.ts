import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
/** 96 bits, the length that GCM is defined for. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The place of an encrypted value; it can be decrypted nowhere else. */
export interface AssociatedData {
  readonly table: string;
  readonly row: string;
  readonly column: string;
}

/**
 * Encrypts a value; returns nonce, authentication tag and cipher text in
 * sequence. The nonce is new for each value.
 */
export function sealWith(key: Uint8Array, value: string, place: AssociatedData): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(placeBytes(place));
  const text = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

/**
 * Decrypts a value.
 * @throws when the value was changed, moved to another place, or encrypted with
 *   another key
 */
export function openWith(key: Uint8Array, sealed: Uint8Array, place: AssociatedData): string {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(placeBytes(place))
    .setAuthTag(tag);
  const text = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

function placeBytes({ table, row, column }: AssociatedData): Buffer {
  return Buffer.from(JSON.stringify([table, row, column]), "utf8");
}
