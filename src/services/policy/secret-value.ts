import type { Keys } from "../../keys.ts";
import { findSecretsUnderKey, reencryptSecretValue, type SealedValue } from "../../store/policy/secret.ts";
import type { Store } from "../../store/store.ts";
import { reencryptRows } from "./reencryption.ts";

/** Encrypts the value of a secret with the newest key. */
export function sealSecretValue(keys: Pick<Keys, "seal">, id: string, value: string): SealedValue {
  return keys.seal(value, associatedData(id));
}

/**
 * Decrypts the value of a secret.
 *
 * @throws when the value was changed or moved, or its key is not in the key file
 */
export function openSecretValue(
  keys: Pick<Keys, "open">,
  id: string,
  { keyId, sealed }: SealedValue,
): string {
  return keys.open(keyId, sealed, associatedData(id));
}

function associatedData(id: string) {
  return { table: "secret", row: id, column: "sealed" };
}

/** The error for a secret that cannot be decrypted, because its row was changed outside the server. */
export class DamagedSecret extends Error {
  override readonly name = "DamagedSecret";

  constructor(id: string, cause: unknown) {
    super(`the secret ${id} does not open: its row was changed or moved`, { cause });
  }
}

/**
 * Re-encrypts every secret that is encrypted with a former key. It may be interrupted
 * at any time and called again. Nothing is recorded, since the secrets do not change.
 *
 * @returns the number of re-encrypted secrets
 * @throws DamagedSecret; the secrets before it are re-encrypted
 */
export async function reencryptSecrets(store: Store, keys: Keys): Promise<number> {
  return reencryptRows(store, keys, {
    find: findSecretsUnderKey,
    reencrypt: (tx, { id, value }) =>
      reencryptSecretValue(tx, id, sealSecretValue(keys, id, openOrThrow(keys, id, value))),
  });
}

/**
 * Decrypts the value of a secret, naming the secret in the error.
 *
 * @throws DamagedSecret
 */
export function openOrThrow(keys: Pick<Keys, "open">, id: string, value: SealedValue): string {
  try {
    return openSecretValue(keys, id, value);
  } catch (error) {
    throw new DamagedSecret(id, error);
  }
}
