import type { HandlerContext } from "@connectrpc/connect";
import { requireMayReadSecretOf } from "../../domain/workflow/execution/workflow-start.ts";
import { newWebhookSecret } from "../../domain/workflow/trigger/webhook-signature.ts";
import { requireWorkflowNotPendingDeletion } from "../../domain/workflow/workflow.ts";
import type { Keys } from "../../keys.ts";
import type { Handle, Reader, WriteTransaction } from "../../store/store.ts";
import {
  findWebhookSecrets,
  insertWebhookSecret,
  recordWebhookSecretRead,
  type SealedSecret,
  type SealedWebhookSecrets,
  updateWebhookSecrets,
} from "../../store/workflow/webhook-secret.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { getOwnedWorkflow } from "./owned-workflow.ts";

/** Time for which the previous secret remains valid after a rotation (contract, RotateWorkflowWebhookSecret). */
const OVERLAP_MS = 24 * 3600 * 1000;

type Dependencies = Pick<ServiceDependencies, "store" | "keys">;

/** The decrypted secrets of one workflow. */
export interface WebhookSecrets {
  readonly current: string;
  readonly previous: { readonly secret: string; readonly until: number } | undefined;
}

/** Returns the current secret. The audit log records the read. */
export function getWorkflowWebhookSecret(
  { store, keys }: Dependencies,
  workflowId: string,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await getOwnedWorkflow(tx, ctx, caller, workflowId);
    requireMayReadSecretOf(workflow, caller);
    const { id } = workflow;
    const { current } = openWebhookSecrets(keys, id, await getSealedSecrets(tx.db, id));
    await recordWebhookSecretRead(tx, caller, id, caller.subject);
    return { secret: current };
  });
}

/** Creates a new secret; the previous one remains valid for another 24 hours. */
export function rotateWorkflowWebhookSecret(
  { store, keys }: Dependencies,
  workflowId: string,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await getOwnedWorkflow(tx, ctx, caller, workflowId);
    requireMayReadSecretOf(workflow, caller);
    requireWorkflowNotPendingDeletion(workflow);
    const { id } = workflow;
    const present = openWebhookSecrets(keys, id, await getSealedSecrets(tx.db, id));
    const secret = newWebhookSecret(keys.randomSecret());
    const previous = { secret: present.current, until: tx.now + OVERLAP_MS };
    const sealed = sealWebhookSecrets(keys, id, { current: secret, previous });
    await updateWebhookSecrets(tx, caller, workflow, sealed, caller.subject);
    return { secret };
  });
}

/** Creates the first secret of a new workflow. */
export async function createWebhookSecret(
  tx: WriteTransaction,
  keys: Pick<Keys, "seal" | "randomSecret">,
  workflowId: Handle<"workflow">,
): Promise<void> {
  await insertWebhookSecret(
    tx,
    workflowId,
    seal(keys, workflowId, "sealed", newWebhookSecret(keys.randomSecret())),
  );
}

/**
 * Returns the secrets that may sign a delivery to a workflow at `now` (milliseconds since 1970 UTC), newest first;
 * none for an unknown workflow. They do not leave the server, so the read is not recorded.
 */
export async function findValidWebhookSecrets(
  db: Reader,
  workflowId: string,
  keys: Pick<Keys, "open">,
  now: number,
): Promise<string[]> {
  const sealed = await findWebhookSecrets(db, workflowId);
  if (!sealed) return [];
  const { current, previous } = openWebhookSecrets(keys, workflowId, sealed);
  return previous && now < previous.until ? [current, previous.secret] : [current];
}

/** Encrypts the secrets of a workflow with the newest key. */
export function sealWebhookSecrets(
  keys: Pick<Keys, "seal">,
  workflowId: string,
  { current, previous }: WebhookSecrets,
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
 * Decrypts the secrets of a workflow, as {@link sealWebhookSecrets} encrypted them.
 *
 * @throws when a value was changed or moved, or its key is not in the key file
 */
export function openWebhookSecrets(
  keys: Pick<Keys, "open">,
  workflowId: string,
  { current, previous }: SealedWebhookSecrets,
): WebhookSecrets {
  const open = ({ keyId, sealed }: SealedSecret, column: Column) =>
    keys.open(keyId, sealed, associatedData(workflowId, column));
  return {
    current: open(current, "sealed"),
    previous: previous && { secret: open(previous, "previous_sealed"), until: previous.until },
  };
}

async function getSealedSecrets(db: Reader, workflowId: string): Promise<SealedWebhookSecrets> {
  const found = await findWebhookSecrets(db, workflowId);
  if (!found) throw new Error(`the workflow ${workflowId} has no webhook secret`);
  return found;
}

type Column = "sealed" | "previous_sealed";

function seal(keys: Pick<Keys, "seal">, workflowId: string, column: Column, secret: string): SealedSecret {
  return keys.seal(secret, associatedData(workflowId, column));
}

function associatedData(workflowId: string, column: Column) {
  return { table: "workflow_secret", row: workflowId, column };
}
