import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/error.ts";
import { readWebhook } from "../domain/webhook-reading.ts";
import {
  type SignatureCryptography,
  type SignatureRefusal,
  type SignedDelivery,
  unsignedDeliveryId,
  verifySignature,
  webhookSecret,
} from "../domain/webhook-signature.ts";
import { refuseBorrowedEvent } from "../domain/workflow-start.ts";
import { type Actor, SYSTEM, type WriteTransaction } from "../store/store.ts";
import { findDeliveryEvents, insertDelivery } from "../store/webhook-delivery.ts";
import { findAnyWorkflow } from "../store/workflow.ts";
import { findWebhookSecretKnowers } from "../store/workflow-secret.ts";
import { findTriggerEventByKey } from "../store/workflow-trigger-event.ts";
import { refuseStrangerTo } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { refuseCutOff } from "./standing.ts";
import { recordDuplicate, recordTriggerEvent } from "./trigger-ledger.ts";
import { fireWebhook } from "./webhook-triggers.ts";
import { openWebhookSecrets } from "./workflow-secret.ts";

/** How long the id of a delivery is known again (issue 4: 24 hours). */
export const DELIVERY_MS = 24 * 3_600_000;

/** A workflow's own secret, and for a day after a rotation the one before it. */
const MOST_SECRETS = 2;

/** Bad signatures of one workflow leave one entry in each of these spans (issue 4: a minute). */
const BAD_SIGNATURE_MS = 60_000;

/** What a token must be allowed that stands in for a signature. */
export const START_WORKFLOW = "service.v1.WorkflowService/StartWorkflow";

/** Something that was posted to the webhook of a workflow. */
export interface PostedDelivery extends SignedDelivery {
  /** As the path has it: any text. */
  readonly workflowId: string;
  /**
   * Asked only for a delivery without a signature: whose access token it
   * carries, of a caller that may start workflows; undefined for nobody's.
   */
  readonly identify: () => Promise<Caller | undefined>;
}

export interface WebhookDependencies extends Pick<ServiceDependencies, "store" | "keys" | "now"> {
  readonly cryptography: SignatureCryptography;
  /** Told of an entry that could not be written; the answer has left by then. */
  readonly onRecordFailure: (error: unknown) => void;
}

/**
 * Takes a delivery to the triggers of its workflow.
 *
 * @returns what it entered in the ledger, at least one entry
 * @throws DomainError UNAUTHENTICATED, the same for an unknown workflow and a
 *   signature that does not hold; PERMISSION_DENIED for a member whose own the
 *   workflow is not; what `identify` throws
 */
export type ReceiveDelivery = (delivery: PostedDelivery) => Promise<WorkflowTriggerEvent[]>;

export function createWebhook(deps: WebhookDependencies): ReceiveDelivery {
  const { store, keys, now, cryptography } = deps;
  // Nobody knows them. They make up the number, so that a delivery to an unknown workflow takes no less time.
  const unknownSecrets = Array.from({ length: MOST_SECRETS }, () => webhookSecret(keys.randomSecret()));
  return async (delivery) => {
    const workflowId = delivery.workflowId.toLowerCase();
    const secrets = await openWebhookSecrets(store.reader, workflowId, keys, now());
    const candidates = [...secrets, ...unknownSecrets].slice(0, MOST_SECRETS);
    const verdict = verifySignature(delivery, candidates, now(), cryptography);
    if (verdict.verified) {
      const { deliveryId } = verdict;
      return store.write(SYSTEM, "webhook", (tx) => deliver(tx, workflowId, delivery, { deliveryId }));
    }
    const caller = verdict.reason === "unsigned" ? await delivery.identify() : undefined;
    if (caller) {
      const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
      return store.write(actor, "webhook", (tx) => deliver(tx, workflowId, delivery, { caller }));
    }
    // After the answer: how long it takes would tell that the workflow is there.
    setImmediate(() => recordBadSignature(deps, workflowId, verdict.reason).catch(deps.onRecordFailure));
    throw unbelieved();
  };
}

/** How a delivery is believed: by its signature, or by the caller whose token it carries. */
type Belief = { readonly deliveryId: string | undefined } | { readonly caller: Caller };

/** Starts what a believed delivery asks for, unless it was delivered before. */
async function deliver(
  tx: WriteTransaction,
  workflowId: string,
  { headers, body }: SignedDelivery,
  belief: Belief,
): Promise<WorkflowTriggerEvent[]> {
  const caller = "caller" in belief ? belief.caller : undefined;
  if (caller) await refuseCutOff(tx, caller, START_WORKFLOW);
  const found = await findAnyWorkflow(tx.db, workflowId);
  if (!found || (caller && caller.organizationId !== found.organizationId)) throw unbelieved();
  const { workflow, organizationId } = found;
  if (caller) refuseStrangerTo(START_WORKFLOW, caller, workflow.metadata?.creator);
  const creator = caller?.subject ?? workflow.metadata?.executor;
  if (!creator) throw new Error(`the workflow ${workflowId} has no executor`);

  const deliveryId = "caller" in belief ? unsignedDeliveryId(headers) : belief.deliveryId;
  const name = deliveryId === undefined ? undefined : { workflowId, deliveryId };
  const earlier = name && (await findDeliveryEvents(tx.db, name, tx.now - DELIVERY_MS));
  if (earlier) {
    const copies: WorkflowTriggerEvent[] = [];
    for (const id of earlier) copies.push(await recordDuplicate(tx, found, id));
    return copies;
  }
  const reading = readWebhook(headers, body);
  if (caller && reading.kind === "pull_request") refuseBorrowedEvent(workflow, caller);
  const chosenBy = caller ? [caller.subject] : await findWebhookSecretKnowers(tx.db, workflowId, tx.now);
  const entered = await fireWebhook(tx, {
    organizationId,
    workflow,
    reading,
    creator,
    chosenBy,
    deliveryId,
  });
  const eventIds = entered.map(({ id }) => id);
  if (name) await insertDelivery(tx, name, eventIds);
  return entered;
}

const REASONS: Readonly<Record<SignatureRefusal, string>> = {
  unsigned: "the delivery has neither a signature nor an access token that may start the workflow",
  malformed: "the signature is not of the form of its scheme",
  outside_window: "the timestamp of the signature is more than five minutes from now",
  mismatch: "the signature was made with another secret, or for another body",
};

/** Once in a while only, so that a stranger cannot fill the ledger. */
async function recordBadSignature(
  { store, now }: WebhookDependencies,
  workflowId: string,
  refusal: SignatureRefusal,
): Promise<void> {
  const dedupeKey = `bad_signature:${Math.floor(now() / BAD_SIGNATURE_MS)}`;
  const found = await findAnyWorkflow(store.reader, workflowId);
  if (!found || (await findTriggerEventByKey(store.reader, found, workflowId, dedupeKey))) return;
  await store.write(SYSTEM, "webhook", async (tx) => {
    const isKnown = await findAnyWorkflow(tx.db, workflowId);
    if (!isKnown || (await findTriggerEventByKey(tx.db, found, workflowId, dedupeKey))) return;
    await recordTriggerEvent(tx, found, {
      workflowId,
      source: Source.WEBHOOK,
      verdict: TriggerVerdict.BAD_SIGNATURE,
      reason: REASONS[refusal],
      dedupeKey,
    });
  });
}

function unbelieved(): DomainError {
  return new DomainError(
    ErrorReason.UNAUTHENTICATED,
    "a delivery must be signed with the workflow's webhook secret, or carry an access token that may start the workflow",
  );
}
