import type { Keys } from "../../keys.ts";
import type { Store } from "../../store/store.ts";
import {
  findWebhookSecretsUnderKey,
  replaceWebhookSecrets,
  type SealedWebhookSecrets,
} from "../../store/workflow/webhook-secret.ts";
import { reencryptRows } from "../policy/reencryption.ts";
import { openWebhookSecrets, sealWebhookSecrets, type WebhookSecrets } from "./webhook-secret.ts";

/** The error for a webhook secret that cannot be decrypted, because its row was changed outside the server. */
export class DamagedWebhookSecret extends Error {
  override readonly name = "DamagedWebhookSecret";

  constructor(workflowId: string, cause: unknown) {
    super(`the webhook secret of the workflow ${workflowId} does not open: its row was changed or moved`, {
      cause,
    });
  }
}

/**
 * Re-encrypts every webhook secret that is encrypted with a former key. It may be interrupted and called again at any
 * time. Drops previous secrets that are no longer valid.
 *
 * @returns the number of workflows with re-encrypted secrets
 * @throws DamagedWebhookSecret; the secrets before it are re-encrypted
 */
export async function reencryptWebhookSecrets(store: Store, keys: Keys): Promise<number> {
  return reencryptRows(store, keys, {
    find: findWebhookSecretsUnderKey,
    async reencrypt(tx, { workflowId, secrets }) {
      const isPreviousValid = (secrets.previous?.until ?? 0) > tx.now;
      const lasting = isPreviousValid ? secrets : { ...secrets, previous: undefined };
      const decrypted = decryptOrThrow(keys, workflowId, lasting);
      await replaceWebhookSecrets(tx, workflowId, sealWebhookSecrets(keys, workflowId, decrypted));
    },
  });
}

function decryptOrThrow(keys: Keys, workflowId: string, sealed: SealedWebhookSecrets): WebhookSecrets {
  try {
    return openWebhookSecrets(keys, workflowId, sealed);
  } catch (error) {
    throw new DamagedWebhookSecret(workflowId, error);
  }
}
