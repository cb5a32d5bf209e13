import type { Keys } from "../../keys.ts";
import { OPERATOR, type Reader, type Scope, type Store, type WriteTransaction } from "../../store/store.ts";

/** Rows re-encrypted per commit. At most this many are undone when the process is killed. */
const ROWS_PER_BATCH = 100;

/** The rows of a table with encrypted values. */
export interface EncryptedRows<T extends Scope> {
  /** Returns up to `limit` rows whose values are encrypted with a key. */
  find(db: Reader, keyId: string, limit: number): Promise<readonly T[]>;
  /** Stores the values of a row encrypted with the newest key. */
  reencrypt(tx: WriteTransaction, row: T): Promise<void>;
}

/**
 * Re-encrypts every row that is encrypted with a former key. It may be interrupted at any time and called again.
 *
 * @returns the number of re-encrypted rows
 * @throws the error of `reencrypt`; the batches before it are re-encrypted
 */
export async function reencryptRows<T extends Scope>(
  store: Pick<Store, "write">,
  keys: Pick<Keys, "ids">,
  rows: EncryptedRows<T>,
): Promise<number> {
  let reencrypted = 0;
  for (const formerId of keys.ids.slice(1)) {
    const find = (db: Reader) => rows.find(db, formerId, ROWS_PER_BATCH);
    const reencryptBatch = async (tx: WriteTransaction) => {
      const found = await find(tx.db);
      for (const row of found) await rows.reencrypt(tx, row);
      return found.length;
    };
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", reencryptBatch, {
        locks: async (db) => (await find(db)).map(({ organizationId }) => organizationId),
      });
      reencrypted += batch;
      if (batch < ROWS_PER_BATCH) break;
    }
  }
  return reencrypted;
}
