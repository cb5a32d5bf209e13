import type { Keys } from "../../keys.ts";
import { findSecretsUnderKey, reencryptSecretValue, type SealedValue } from "../../store/policy/secret.ts";
import { OPERATOR, type Reader, type Store, type WriteTransaction } from "../../store/store.ts";

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

/** Number of secrets re-encrypted per commit, which is also the most that a kill undoes. */
const SECRETS_PER_BATCH = 100;

/** The error for a secret that cannot be decrypted: its row was changed outside of the server. */
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
  let reencrypted = 0;
  for (const formerId of keys.ids.slice(1)) {
    const find = (db: Reader) => findSecretsUnderKey(db, formerId, SECRETS_PER_BATCH);
    const reencryptBatch = async (tx: WriteTransaction) => {
      const found = await find(tx.db);
      for (const { id, value } of found) {
        await reencryptSecretValue(tx, id, sealSecretValue(keys, id, openOrThrow(keys, id, value)));
      }
      return found.length;
    };
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", reencryptBatch, {
        locks: async (db) => (await find(db)).map(({ organizationId }) => organizationId),
      });
      reencrypted += batch;
      if (batch < SECRETS_PER_BATCH) break;
    }
  }
  return reencrypted;
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
