import type { Keys } from "../../keys.ts";
import { OPERATOR, type Store } from "../../store/store.ts";
import {
  findWebhookSecretsUnderKey,
  replaceWebhookSecrets,
  type SealedWebhookSecrets,
} from "../../store/workflow/workflow-secret.ts";
import { type OpenWebhookSecrets, openSecrets, sealSecrets } from "./workflow-secret.ts";

/** Number of workflows whose secrets are re-encrypted in one commit, which is what a kill undoes at most. */
const WORKFLOWS_PER_BATCH = 100;

/** A webhook secret that does not open: its row was changed outside of the server. */
export class DamagedWebhookSecret extends Error {
  override readonly name = "DamagedWebhookSecret";

  constructor(workflowId: string, cause: unknown) {
    super(`the webhook secret of the workflow ${workflowId} does not open: its row was changed or moved`, {
      cause,
    });
  }
}

/**
 * Seals every webhook secret that is under a former key with the newest one, as
 * reencryptHostTokens does it for host tokens. One that was replaced and verifies
 * no more is left out.
 *
 * @returns how many workflows had one under a former key
 * @throws DamagedWebhookSecret; the secrets before it are re-encrypted
 */
export async function reencryptWebhookSecrets(store: Store, keys: Keys): Promise<number> {
  let sealed = 0;
  for (const formerId of keys.ids.slice(1)) {
    for (;;) {
      const batch = await store.write(OPERATOR, "chartroom keys rotate", async (tx) => {
        const found = await findWebhookSecretsUnderKey(tx.db, formerId, WORKFLOWS_PER_BATCH);
        for (const { workflowId, secrets } of found) {
          const lasting =
            (secrets.previous?.until ?? 0) > tx.now ? secrets : { ...secrets, previous: undefined };
          await replaceWebhookSecrets(
            tx,
            workflowId,
            sealSecrets(keys, workflowId, opened(keys, workflowId, lasting)),
          );
        }
        return found.length;
      });
      sealed += batch;
      if (batch < WORKFLOWS_PER_BATCH) break;
    }
  }
  return sealed;
}

function opened(keys: Keys, workflowId: string, sealed: SealedWebhookSecrets): OpenWebhookSecrets {
  try {
    return openSecrets(keys, workflowId, sealed);
  } catch (error) {
    throw new DamagedWebhookSecret(workflowId, error);
  }
}
