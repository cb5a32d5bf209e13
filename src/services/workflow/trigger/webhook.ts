import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { deliveryMalformed, deliveryUnproven } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { requireOwnershipFor } from "../../../domain/identity/ownership.ts";
import { requireMayReportEventAs } from "../../../domain/workflow/execution/workflow-start.ts";
import { readWebhook } from "../../../domain/workflow/trigger/webhook-reading.ts";
import {
  type SignatureCryptography,
  type SignatureRefusal,
  type SignatureVerdict,
  type SignedDelivery,
  unsignedDeliveryId,
  verifySignature,
  webhookSecret,
} from "../../../domain/workflow/trigger/webhook-signature.ts";
import { type Actor, SYSTEM, type WriteTransaction } from "../../../store/store.ts";
import { findDeliveryEvents, insertDelivery } from "../../../store/workflow/webhook-delivery.ts";
import { findAnyWorkflow } from "../../../store/workflow/workflow.ts";
import { findWebhookSecretHolders } from "../../../store/workflow/workflow-secret.ts";
import { findTriggerEventByKey } from "../../../store/workflow/workflow-trigger-event.ts";
import { requireNotRevoked } from "../../call/authenticated-caller.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { openWebhookSecrets } from "../workflow-secret.ts";
import { recordDuplicate, recordTriggerEvent } from "./trigger-ledger.ts";
import { fireWebhook } from "./webhook-triggers.ts";

/** Time for which a repeated delivery is recognized by its id: 24 hours. */
export const DELIVERY_MS = 24 * 3_600_000;

/** A workflow's own secret, and for a day after a rotation the one before it. */
const MAX_SECRETS = 2;

/** Bad signatures of one workflow leave one entry in each of these spans (issue 4: a minute). */
const BAD_SIGNATURE_MS = 60_000;

/** The operation that a token must be allowed to call in place of a signature. */
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
 *   workflow is not; BODY_MALFORMED, once it has an entry, for a body that is no
 *   JSON; what `identify` throws
 */
export type ReceiveDelivery = (delivery: PostedDelivery) => Promise<WorkflowTriggerEvent[]>;

export function createWebhook(deps: WebhookDependencies): ReceiveDelivery {
  const { store, keys, now, cryptography } = deps;
  // Nobody knows them. They make up the number, so that a delivery to an unknown workflow takes no less time.
  const unknownSecrets = Array.from({ length: MAX_SECRETS }, () => webhookSecret(keys.randomSecret()));
  return async (delivery) => {
    const workflowId = delivery.workflowId.toLowerCase();
    const secrets = await openWebhookSecrets(store.reader, workflowId, keys, now());
    const candidates = [...secrets, ...unknownSecrets].slice(0, MAX_SECRETS);
    const verdict = verifySignature(delivery, candidates, now(), cryptography);
    if (verdict.verified) {
      return entriesOf(
        await store.write(SYSTEM, "webhook", (tx) => deliver(tx, workflowId, delivery, verdict)),
      );
    }
    const caller = verdict.reason === "unsigned" ? await delivery.identify() : undefined;
    if (caller) {
      const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
      return entriesOf(
        await store.write(actor, "webhook", (tx) => deliver(tx, workflowId, delivery, { caller })),
      );
    }
    // After the answer: how long it takes would tell that the workflow is there.
    setImmediate(() => recordBadSignature(deps, workflowId, verdict.reason).catch(deps.onRecordFailure));
    throw deliveryUnproven();
  };
}

/** The proof of a delivery: its signature, or the caller whose token it carries. */
type DeliveryProof = SignedProof | { readonly caller: Caller };

type SignedProof = Extract<SignatureVerdict, { verified: true }>;

/** The result of a delivery. */
interface Delivery {
  readonly entries: WorkflowTriggerEvent[];
  /** Why its body is no JSON; an entry tells that too. */
  readonly malformed?: string;
}

function entriesOf({ entries, malformed }: Delivery): WorkflowTriggerEvent[] {
  if (malformed === undefined) return entries;
  throw deliveryMalformed(malformed);
}

/** Starts what a believed delivery asks for, unless it was delivered before. */
async function deliver(
  tx: WriteTransaction,
  workflowId: string,
  { headers, body }: SignedDelivery,
  proof: DeliveryProof,
): Promise<Delivery> {
  const caller = "caller" in proof ? proof.caller : undefined;
  if (caller) await requireNotRevoked(tx, caller, START_WORKFLOW);
  const found = await findAnyWorkflow(tx.db, workflowId);
  if (!found || (caller && caller.organizationId !== found.organizationId)) throw deliveryUnproven();
  const { workflow, organizationId } = found;
  if (caller) requireOwnershipFor(START_WORKFLOW, caller, workflow.metadata?.creator);
  const creator = caller?.subject ?? workflow.metadata?.executor;
  if (!creator) throw new Error(`the workflow ${workflowId} has no executor`);

  const deliveryId = "caller" in proof ? unsignedDeliveryId(headers) : proof.deliveryId;
  const reading = readWebhook(headers, body);
  const bodySignature = "caller" in proof ? undefined : proof.bodySignature;
  const names = namesOf(deliveryId, bodySignature);
  // The signature of Standard Webhooks covers the id; an event of a pull request counts once by what it tells.
  const countsById =
    reading.kind === "pull_request" || ("scheme" in proof && proof.scheme === "standard-webhooks");
  for (const { name, reason } of countsById ? namesOf(deliveryId, undefined) : names) {
    const earlier = await findDeliveryEvents(
      tx.db,
      { workflowId: workflow.id, deliveryId: name },
      tx.now - DELIVERY_MS,
    );
    if (!earlier) continue;
    const copies: WorkflowTriggerEvent[] = [];
    for (const id of earlier) copies.push(await recordDuplicate(tx, found, id, reason));
    return { entries: copies };
  }
  if (caller && reading.kind === "pull_request") requireMayReportEventAs(workflow, caller);
  const sourceSetters = caller
    ? [caller.subject]
    : await findWebhookSecretHolders(tx.db, workflow.id, tx.now);
  const entered = await fireWebhook(tx, {
    organizationId,
    workflow,
    reading,
    creator,
    sourceSetters,
    deliveryId,
  });
  if (reading.kind === "malformed") return { entries: entered, malformed: reading.problem };
  const eventIds = entered.map(({ id }) => id);
  const isStartRefused = reading.kind === "manual" && entered.every(({ verdict }) => REFUSALS.has(verdict));
  for (const { name } of isStartRefused ? namesOf(deliveryId, undefined) : names)
    await insertDelivery(tx, { workflowId: workflow.id, deliveryId: name }, eventIds);
  return { entries: entered };
}

/**
 * Returns what a delivery is known again by. Where the body alone is signed an
 * id proves nothing: anybody who saw the delivery could send it again under
 * another, so its signature counts too. The space keeps it apart from every id.
 */
function namesOf(deliveryId: string | undefined, bodySignature: string | undefined) {
  return [
    ...(deliveryId === undefined ? [] : [{ name: deliveryId, reason: "the delivery arrived before" }]),
    ...(bodySignature === undefined ? [] : [{ name: `hub ${bodySignature}`, reason: SAME_SIGNATURE }]),
  ];
}

/** A start by hand that came to this leaves its body's signature free, so that it can be sent again once the cause is gone. */
const REFUSALS: ReadonlySet<TriggerVerdict> = new Set([TriggerVerdict.REFUSED, TriggerVerdict.DISABLED]);

const SAME_SIGNATURE =
  "this body arrived with this signature before: X-Hub-Signature-256 signs no id, so that it counts once in 24 hours; " +
  "to send the same again, sign it as Standard Webhooks, with an id of its own";

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
