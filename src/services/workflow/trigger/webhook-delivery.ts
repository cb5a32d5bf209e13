import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { deliveryMalformed, deliveryUnauthenticated } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { TraceParent } from "../../../domain/trace/trace-context.ts";
import { requireMayReportEventAs } from "../../../domain/workflow/execution/workflow-start.ts";
import { parseDelivery } from "../../../domain/workflow/trigger/parsed-delivery.ts";
import {
  newWebhookSecret,
  type SignatureCryptography,
  type SignatureRefusal,
  type SignatureVerdict,
  type SignedDelivery,
  unsignedDeliveryId,
  verifySignature,
} from "../../../domain/workflow/trigger/webhook-signature.ts";
import { type Actor, SYSTEM, type WriteTransaction, within } from "../../../store/store.ts";
import { findDeliveryEvents, insertDelivery } from "../../../store/workflow/webhook-delivery.ts";
import { findWebhookSecretHolders } from "../../../store/workflow/webhook-secret.ts";
import { findAnyWorkflow, findWorkflowOwner } from "../../../store/workflow/workflow.ts";
import { findTriggerEventByKey } from "../../../store/workflow/workflow-trigger-event.ts";
import { requireNotRevoked } from "../../call/authenticated-caller.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { requireMayStart } from "../owned-workflow.ts";
import { hintOfDelivery } from "../pull-request/pull-request-hint.ts";
import { findValidWebhookSecrets } from "../webhook-secret.ts";
import { recordDuplicate, recordTriggerEvent } from "./trigger-ledger.ts";
import { fireWebhook } from "./webhook-triggers.ts";

/** Time for which a repeated delivery is recognized as a duplicate: 24 hours. */
export const DELIVERY_ID_RETENTION_MS = 24 * 3_600_000;

/** Number of secrets that can be valid at once: the current one, and for a day after a rotation the previous one. */
const MAX_VALID_SECRETS = 2;

/** Invalid signatures are recorded at most once per workflow and interval, so that a stranger cannot fill the ledger. */
const BAD_SIGNATURE_INTERVAL_MS = 60_000;

/** The operation that the caller of a delivery without a signature must be allowed to call. */
export const START_WORKFLOW = "service.v1.WorkflowService/StartWorkflow";

/** A request to the webhook of a workflow. */
export interface WebhookDelivery extends SignedDelivery {
  /** The id in the path, which may be any text. */
  readonly workflowId: string;
  /** The trace of the request, for what it starts. */
  readonly trace?: TraceParent | undefined;
  /**
   * Returns the caller whose access token the request has, if it may start workflows; otherwise undefined. Called
   * only for a delivery without a signature.
   */
  readonly identify: () => Promise<Caller | undefined>;
}

/** The dependencies of {@link createWebhookReceiver}. */
export interface WebhookDependencies extends Pick<ServiceDependencies, "store" | "keys" | "now"> {
  readonly cryptography: SignatureCryptography;
  /** Called when recording an invalid signature failed, after the response was sent. */
  readonly onRecordFailure: (error: unknown) => void;
}

/**
 * Verifies a delivery and fires the triggers of its workflow.
 *
 * @returns the new ledger entries, at least one
 * @throws DomainError UNAUTHENTICATED, the same for an unknown workflow and an invalid signature; PERMISSION_DENIED
 * for a member that does not own the workflow; BODY_MALFORMED for a body that is not JSON, after it was recorded; the
 * errors of `identify`
 */
export type ReceiveDelivery = (delivery: WebhookDelivery) => Promise<WorkflowTriggerEvent[]>;

/** Creates the function that receives the deliveries to all webhooks. */
export function createWebhookReceiver(deps: WebhookDependencies): ReceiveDelivery {
  const { store, keys, now, cryptography } = deps;
  // Placeholders, so that verification takes the same time for an unknown workflow.
  const unknownSecrets = Array.from({ length: MAX_VALID_SECRETS }, () =>
    newWebhookSecret(keys.randomSecret()),
  );
  return async (delivery) => {
    const workflowId = delivery.workflowId.toLowerCase();
    const secrets = await findValidWebhookSecrets(store.reader, workflowId, keys, now());
    const candidates = [...secrets, ...unknownSecrets].slice(0, MAX_VALID_SECRETS);
    const owner = await findWorkflowOwner(store.reader, workflowId);
    const verdict = verifySignature(delivery, candidates, now(), cryptography);
    if (verdict.verified && owner) {
      return requireWellFormed(
        await store.write(SYSTEM, "webhook", (tx) => processDelivery(tx, workflowId, delivery, verdict), {
          ...within(owner),
          trace: delivery.trace,
        }),
      );
    }
    // The workflow was removed in the meantime.
    if (verdict.verified) throw deliveryUnauthenticated();
    const caller = verdict.reason === "unsigned" ? await delivery.identify() : undefined;
    if (caller) {
      const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
      return requireWellFormed(
        await store.write(
          actor,
          "webhook",
          (tx) => processDelivery(tx, workflowId, delivery, { caller }),
          // This rejects a workflow of another organization.
          { ...within(caller), trace: delivery.trace },
        ),
      );
    }
    // Only after the response: its duration would otherwise reveal that the workflow exists.
    setImmediate(() => recordBadSignature(deps, workflowId, verdict.reason).catch(deps.onRecordFailure));
    throw deliveryUnauthenticated();
  };
}

/** How a delivery was authenticated: by its signature, or as the caller whose token it has. */
type DeliveryProof = SignedProof | { readonly caller: Caller };

type SignedProof = Extract<SignatureVerdict, { verified: true }>;

/** The result of a delivery that was processed. */
interface DeliveryResult {
  readonly entries: WorkflowTriggerEvent[];
  /** Reason why its body is not JSON. */
  readonly malformed?: string;
}

function requireWellFormed({ entries, malformed }: DeliveryResult): WorkflowTriggerEvent[] {
  if (malformed === undefined) return entries;
  throw deliveryMalformed(malformed);
}

/** Fires the triggers for an authenticated delivery, unless it is a duplicate. */
async function processDelivery(
  tx: WriteTransaction,
  workflowId: string,
  { headers, body }: SignedDelivery,
  proof: DeliveryProof,
): Promise<DeliveryResult> {
  const caller = "caller" in proof ? proof.caller : undefined;
  if (caller) await requireNotRevoked(tx, caller, START_WORKFLOW);
  const found = await findAnyWorkflow(tx.db, workflowId);
  if (!found || (caller && caller.organizationId !== found.organizationId)) throw deliveryUnauthenticated();
  const { workflow, organizationId } = found;
  if (caller) await requireMayStart(tx, START_WORKFLOW, caller, workflow);
  const creator = caller?.subject ?? workflow.metadata?.executor;
  if (!creator) throw new Error(`the workflow ${workflowId} has no executor`);

  const deliveryId = "caller" in proof ? unsignedDeliveryId(headers) : proof.deliveryId;
  const reading = parseDelivery(headers, body);
  await hintOfDelivery(tx, found, { headers, body }, reading);
  const bodySignature = "caller" in proof ? undefined : proof.bodySignature;
  const keys = deduplicationKeys(deliveryId, bodySignature);
  // The id suffices: Standard Webhooks signs it, and events of pull requests have their own deduplication keys.
  const isIdSigned =
    reading.kind === "pull_request" || ("scheme" in proof && proof.scheme === "standard-webhooks");
  for (const { name, reason } of isIdSigned ? deduplicationKeys(deliveryId, undefined) : keys) {
    const earlier = await findDeliveryEvents(
      tx.db,
      { workflowId: workflow.id, deliveryId: name },
      tx.now - DELIVERY_ID_RETENTION_MS,
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
    parsed: reading,
    creator,
    sourceSetters,
    deliveryId,
  });
  if (reading.kind === "malformed") return { entries: entered, malformed: reading.problem };
  const eventIds = entered.map(({ id }) => id);
  const isStartRefused =
    reading.kind === "manual" && entered.every(({ verdict }) => REFUSED_VERDICTS.has(verdict));
  for (const { name } of isStartRefused ? deduplicationKeys(deliveryId, undefined) : keys)
    await insertDelivery(tx, { workflowId: workflow.id, deliveryId: name }, eventIds);
  return { entries: entered };
}

/**
 * Returns the keys that identify a duplicate of a delivery. When only the body is signed, anybody who saw the
 * delivery could send it again with another id, so its signature is a key too. The space distinguishes it from every
 * id.
 */
function deduplicationKeys(deliveryId: string | undefined, bodySignature: string | undefined) {
  return [
    ...(deliveryId === undefined ? [] : [{ name: deliveryId, reason: "the delivery arrived before" }]),
    ...(bodySignature === undefined ? [] : [{ name: `hub ${bodySignature}`, reason: SAME_SIGNATURE_REASON }]),
  ];
}

/** Verdicts that do not store the signature as a key: a manual start can be sent again once the cause is fixed. */
const REFUSED_VERDICTS: ReadonlySet<TriggerVerdict> = new Set([
  TriggerVerdict.REFUSED,
  TriggerVerdict.DISABLED,
]);

const SAME_SIGNATURE_REASON =
  "this body arrived with this signature before: its header signs no id, so that it counts once in 24 hours; " +
  "to send the same again, sign it as Standard Webhooks, with an id of its own";

const REFUSAL_REASONS: Readonly<Record<SignatureRefusal, string>> = {
  unsigned: "the delivery has neither a signature nor an access token that may start the workflow",
  malformed: "the signature is not of the form of its scheme",
  outside_window: "the timestamp of the signature is more than five minutes from now",
  mismatch: "the signature was made with another secret, or for another body",
};

/** Records an invalid signature, unless one was recorded in this interval. */
async function recordBadSignature(
  { store, now }: WebhookDependencies,
  workflowId: string,
  refusal: SignatureRefusal,
): Promise<void> {
  const dedupeKey = `bad_signature:${Math.floor(now() / BAD_SIGNATURE_INTERVAL_MS)}`;
  const found = await findAnyWorkflow(store.reader, workflowId);
  if (!found || (await findTriggerEventByKey(store.reader, found, workflowId, dedupeKey))) return;
  await store.write(
    SYSTEM,
    "webhook",
    async (tx) => {
      const isKnown = await findAnyWorkflow(tx.db, workflowId);
      if (!isKnown || (await findTriggerEventByKey(tx.db, found, workflowId, dedupeKey))) return;
      await recordTriggerEvent(tx, found, {
        workflowId,
        source: Source.WEBHOOK,
        verdict: TriggerVerdict.BAD_SIGNATURE,
        reason: REFUSAL_REASONS[refusal],
        dedupeKey,
      });
    },
    within(found),
  );
}
