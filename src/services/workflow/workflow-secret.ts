import type { HandlerContext } from "@connectrpc/connect";
import { requireMayReadSecretOf } from "../../domain/workflow/execution/workflow-start.ts";
import { webhookSecret } from "../../domain/workflow/trigger/webhook-signature.ts";
import { requireNotDeleting } from "../../domain/workflow/workflow.ts";
import type { Keys } from "../../keys.ts";
import type { Handle, Reader, WriteTransaction } from "../../store/store.ts";
import {
  findWebhookSecrets,
  insertWebhookSecret,
  recordWebhookSecretRead,
  type SealedSecret,
  type SealedWebhookSecrets,
  updateWebhookSecrets,
} from "../../store/workflow/workflow-secret.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { getOwnedWorkflow } from "./owned-workflow.ts";

/** Time for which a replaced secret verifies besides the new one (contract, RotateWorkflowWebhookSecret). */
const OVERLAP_MS = 24 * 3600 * 1000;

type Dependencies = Pick<ServiceDependencies, "store" | "keys">;

/** The secrets of one workflow as texts. */
export interface OpenWebhookSecrets {
  readonly current: string;
  readonly previous: { readonly secret: string; readonly until: number } | undefined;
}

/** Returns the secret in force, and records who got it. */
export function getWorkflowWebhookSecret(
  { store, keys }: Dependencies,
  workflowId: string,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await getOwnedWorkflow(tx, ctx, caller, workflowId);
    requireMayReadSecretOf(workflow, caller);
    const { id } = workflow;
    const { current } = openSecrets(keys, id, await secretsOf(tx.db, id));
    await recordWebhookSecretRead(tx, caller, id, caller.subject);
    return { secret: current };
  });
}

/** Makes a new secret; the one that it replaces verifies for another 24 hours. */
export function rotateWebhookSecret({ store, keys }: Dependencies, workflowId: string, ctx: HandlerContext) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await getOwnedWorkflow(tx, ctx, caller, workflowId);
    requireMayReadSecretOf(workflow, caller);
    requireNotDeleting(workflow);
    const { id } = workflow;
    const present = openSecrets(keys, id, await secretsOf(tx.db, id));
    const secret = webhookSecret(keys.randomSecret());
    const previous = { secret: present.current, until: tx.now + OVERLAP_MS };
    const sealed = sealSecrets(keys, id, { current: secret, previous });
    await updateWebhookSecrets(tx, caller, workflow, sealed, caller.subject);
    return { secret };
  });
}

/** Gives a new workflow its first secret. */
export async function makeWebhookSecret(
  tx: WriteTransaction,
  keys: Pick<Keys, "seal" | "randomSecret">,
  workflowId: Handle<"workflow">,
): Promise<void> {
  await insertWebhookSecret(
    tx,
    workflowId,
    seal(keys, workflowId, "sealed", webhookSecret(keys.randomSecret())),
  );
}

/**
 * The secrets that a delivery to a workflow may be signed with at `now`
 * (milliseconds since 1970 UTC), the newest first. They stay in the server, so
 * nothing is recorded.
 *
 * @returns none for a workflow that does not exist
 */
export async function openWebhookSecrets(
  db: Reader,
  workflowId: string,
  keys: Pick<Keys, "open">,
  now: number,
): Promise<string[]> {
  const sealed = await findWebhookSecrets(db, workflowId);
  if (!sealed) return [];
  const { current, previous } = openSecrets(keys, workflowId, sealed);
  return previous && now < previous.until ? [current, previous.secret] : [current];
}

/** Seals the secrets of a workflow, both with the newest key. */
export function sealSecrets(
  keys: Pick<Keys, "seal">,
  workflowId: string,
  { current, previous }: OpenWebhookSecrets,
): SealedWebhookSecrets {
  return {
    current: seal(keys, workflowId, "sealed", current),
    previous: previous && {
      ...seal(keys, workflowId, "previous_sealed", previous.secret),
      until: previous.until,
    },
  };
}

/**
 * The reverse of {@link sealSecrets}.
 *
 * @throws when a value was changed or moved, or its key is not in the key file
 */
export function openSecrets(
  keys: Pick<Keys, "open">,
  workflowId: string,
  { current, previous }: SealedWebhookSecrets,
): OpenWebhookSecrets {
  const open = ({ keyId, sealed }: SealedSecret, column: Column) =>
    keys.open(keyId, sealed, placeOf(workflowId, column));
  return {
    current: open(current, "sealed"),
    previous: previous && { secret: open(previous, "previous_sealed"), until: previous.until },
  };
}

async function secretsOf(db: Reader, workflowId: string): Promise<SealedWebhookSecrets> {
  const found = await findWebhookSecrets(db, workflowId);
  if (!found) throw new Error(`the workflow ${workflowId} has no webhook secret`);
  return found;
}

type Column = "sealed" | "previous_sealed";

function seal(keys: Pick<Keys, "seal">, workflowId: string, column: Column, secret: string): SealedSecret {
  return keys.seal(secret, placeOf(workflowId, column));
}

function placeOf(workflowId: string, column: Column) {
  return { table: "workflow_secret", row: workflowId, column };
}
