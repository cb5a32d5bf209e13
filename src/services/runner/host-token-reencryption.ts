import type { HostTokenSecrets } from "../../domain/runner/host-token.ts";
import type { Keys } from "../../keys.ts";
import type { SealedSecrets } from "../../store/runner/host-token.ts";
import {
  findHostTokensUnderKey,
  reencryptHostTokenSecrets,
} from "../../store/runner/host-token-reencryption.ts";
import { OPERATOR, type Reader, type Store, type WriteTransaction } from "../../store/store.ts";
import { openHostTokenSecrets, sealHostTokenSecrets } from "./host-token-secret.ts";

/** Number of host tokens re-encrypted per commit, which is also the most that a kill undoes. */
const TOKENS_PER_BATCH = 100;

/** The error for a host token that cannot be decrypted: its row was changed outside of the server. */
export class DamagedHostToken extends Error {
  override readonly name = "DamagedHostToken";

  constructor(id: string, cause: unknown) {
    super(`the host authentication token ${id} does not open: its row was changed or moved`, { cause });
  }
}

/**
 * Re-encrypts every host token that is encrypted with a former key. It may be
 * interrupted at any time and called again. Nothing is recorded, since the tokens do
 * not change.
 *
 * @returns the number of re-encrypted tokens
 * @throws DamagedHostToken; the tokens before it are re-encrypted
 */
export async function reencryptHostTokens(store: Store, keys: Keys): Promise<number> {
  let reencrypted = 0;
  for (const formerId of keys.ids.slice(1)) {
    const find = (db: Reader) => findHostTokensUnderKey(db, formerId, TOKENS_PER_BATCH);
    const reencryptBatch = async (tx: WriteTransaction) => {
      const found = await find(tx.db);
      for (const { id, sealed } of found) {
        const secrets = openOrThrow(keys, id, sealed);
        await reencryptHostTokenSecrets(tx, id, sealHostTokenSecrets(keys, id, secrets));
      }
      return found.length;
    };
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", reencryptBatch, {
        locks: async (db) => (await find(db)).map(({ organizationId }) => organizationId),
      });
      reencrypted += batch;
      if (batch < TOKENS_PER_BATCH) break;
    }
  }
  return reencrypted;
}

function openOrThrow(keys: Keys, id: string, sealed: SealedSecrets): HostTokenSecrets {
  try {
    return openHostTokenSecrets(keys, id, sealed);
  } catch (error) {
    throw new DamagedHostToken(id, error);
  }
}
