import type { Keys } from "../../keys.ts";
import { OPERATOR, type Reader, type Store, type WriteTransaction } from "../../store/store.ts";
import {
  findWebhookSecretsUnderKey,
  replaceWebhookSecrets,
  type SealedWebhookSecrets,
} from "../../store/workflow/webhook-secret.ts";
import { openWebhookSecrets, sealWebhookSecrets, type WebhookSecrets } from "./webhook-secret.ts";

/** Number of workflows whose secrets are re-encrypted per commit, which is also the most that a kill undoes. */
const WORKFLOWS_PER_BATCH = 100;

/** The error for a webhook secret that cannot be decrypted: its row was changed outside of the server. */
export class DamagedWebhookSecret extends Error {
  override readonly name = "DamagedWebhookSecret";

  constructor(workflowId: string, cause: unknown) {
    super(`the webhook secret of the workflow ${workflowId} does not open: its row was changed or moved`, {
      cause,
    });
  }
}

/**
 * Re-encrypts every webhook secret that is encrypted with a former key. It may be
 * interrupted at any time and called again. Previous secrets that are no longer valid
 * are dropped.
 *
 * @returns the number of workflows with re-encrypted secrets
 * @throws DamagedWebhookSecret; the secrets before it are re-encrypted
 */
export async function reencryptWebhookSecrets(store: Store, keys: Keys): Promise<number> {
  let sealed = 0;
  for (const formerId of keys.ids.slice(1)) {
    const find = (db: Reader) => findWebhookSecretsUnderKey(db, formerId, WORKFLOWS_PER_BATCH);
    const reencryptBatch = async (tx: WriteTransaction) => {
      const found = await find(tx.db);
      for (const { workflowId, secrets } of found) {
        const lasting =
          (secrets.previous?.until ?? 0) > tx.now ? secrets : { ...secrets, previous: undefined };
        const decrypted = decryptOrThrow(keys, workflowId, lasting);
        await replaceWebhookSecrets(tx, workflowId, sealWebhookSecrets(keys, workflowId, decrypted));
      }
      return found.length;
    };
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", reencryptBatch, {
        locks: async (db) => (await find(db)).map(({ organizationId }) => organizationId),
      });
      sealed += batch;
      if (batch < WORKFLOWS_PER_BATCH) break;
    }
  }
  return sealed;
}

function decryptOrThrow(keys: Keys, workflowId: string, sealed: SealedWebhookSecrets): WebhookSecrets {
  try {
    return openWebhookSecrets(keys, workflowId, sealed);
  } catch (error) {
    throw new DamagedWebhookSecret(workflowId, error);
  }
}
