import type { HostTokenSecrets } from "../../domain/runner/host-token.ts";
import type { Keys } from "../../keys.ts";
import type { SealedSecrets } from "../../store/runner/host-token.ts";
import { findHostTokensUnder, replaceSecrets } from "../../store/runner/host-token-rotation.ts";
import { OPERATOR, type Store } from "../../store/store.ts";
import { openSecrets, sealSecrets } from "./host-token-secret.ts";

/** Host tokens sealed anew at a time: each time is one commit, and what a kill undoes at most. */
const TOKENS_A_BATCH = 100;

/** A host token that does not open: its row was changed outside of the server. */
export class DamagedHostToken extends Error {
  override readonly name = "DamagedHostToken";

  constructor(id: string, cause: unknown) {
    super(`the host authentication token ${id} does not open: its row was changed or moved`, { cause });
  }
}

/**
 * Seals every host token that is under a former key with the newest one. It may
 * be cut short at any time and called again. Nothing of it is recorded: the
 * tokens stay what they were.
 *
 * @returns how many were under a former key
 * @throws DamagedHostToken; the tokens before it are sealed anew
 */
export async function reencryptHostTokens(store: Store, keys: Keys): Promise<number> {
  let sealed = 0;
  for (const formerId of keys.ids.slice(1)) {
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", async (tx) => {
        const found = await findHostTokensUnder(tx.db, formerId, TOKENS_A_BATCH);
        for (const { id, sealed } of found) {
          await replaceSecrets(tx, id, sealSecrets(keys, id, opened(keys, id, sealed)));
        }
        return found.length;
      });
      sealed += batch;
      if (batch < TOKENS_A_BATCH) break;
    }
  }
  return sealed;
}

function opened(keys: Keys, id: string, sealed: SealedSecrets): HostTokenSecrets {
  try {
    return openSecrets(keys, id, sealed);
  } catch (error) {
    throw new DamagedHostToken(id, error);
  }
}
