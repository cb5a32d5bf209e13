import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import {
  type EventDelivery,
  EventDelivery_AttemptSchema,
  EventDeliveryVerdict,
  EventSubscriptionState,
  EventDeliveryState as State,
} from "#gen/service/v1/event_subscription_pb.js";
import {
  type AttemptResult,
  isAccepted,
  KEPT_ATTEMPTS,
  nextAttemptAt,
  type OutgoingDelivery,
  pauseReason,
} from "../../../domain/access/event-subscription/delivery-outcome.ts";
import { eventBody } from "../../../domain/access/event-subscription/event-message.ts";
import { pausedByServer } from "../../../domain/access/event-subscription/event-subscription.ts";
import { type TraceParent, traceparentOf } from "../../../domain/trace/trace-context.ts";
import type { Keys } from "../../../keys.ts";
import {
  findDelivery,
  findUnsent,
  updateDelivery,
} from "../../../store/access/event-subscription/event-delivery.ts";
import {
  findSubscription,
  setSubscriptionProgress,
  updateSubscription,
} from "../../../store/access/event-subscription/event-subscription.ts";
import { findAgentExecution } from "../../../store/agent/agent-execution.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";
import { openTarget, secretsAt } from "./subscription-secrets.ts";

/** The dependencies of outgoing deliveries. */
export interface SendingContext {
  readonly keys: Pick<Keys, "open">;
  /** URL of the console, without a trailing slash. */
  readonly baseUrl: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * Returns the next delivery of a subscription: a redelivery, or else the first waiting event, if it is due. Later events
 * wait behind it.
 *
 * @returns undefined when there is nothing to send now
 */
export async function nextDelivery(
  db: Reader,
  scope: Scope,
  id: string,
  { keys, baseUrl, now }: SendingContext,
): Promise<OutgoingDelivery | undefined> {
  const stored = await findSubscription(db, scope, id);
  if (!stored || stored.subscription.state !== EventSubscriptionState.ACTIVE) return undefined;
  const next = await findNextUnsent(db, scope, id);
  if (!next || dueAt(next) > now) return undefined;
  const target = openTarget(keys, id, stored.sealed);
  const { organizationId } = scope;
  return {
    id: next.id,
    url: target.url,
    body: eventBody(stored.subscription.format, next, { organizationId, baseUrl }),
    secrets: secretsAt(target, now),
    ...traceparentOf(await findTrace(db, scope, next), next.resourceId),
  };
}

/** Returns the trace of the workflow execution or agent execution that an event is about. */
async function findTrace(
  db: Reader,
  scope: Scope,
  { resourceType, resourceId }: EventDelivery,
): Promise<TraceParent | undefined> {
  if (resourceType === ResourceType.WORKFLOW_EXECUTION)
    return (await findExecution(db, scope, resourceId))?.execution.metadata?.trace;
  if (resourceType === ResourceType.AGENT_EXECUTION)
    return (await findAgentExecution(db, scope, resourceId))?.execution.metadata?.trace;
  return undefined;
}

/**
 * Stores the outcome of an attempt: the delivery's state, its next attempt, and since when its target has been
 * failing. If the target fails for too long or reports that it is gone, pauses the subscription and records that.
 *
 * @param random number from 0 to below 1
 */
export async function applyAttempt(
  tx: WriteTransaction,
  scope: Scope,
  deliveryId: string,
  result: AttemptResult,
  random: number,
): Promise<void> {
  const delivery = await findDelivery(tx.db, scope, deliveryId);
  // The delivery may have been deleted with its subscription in the meantime.
  const stored = delivery && (await findSubscription(tx.db, scope, delivery.eventSubscriptionId));
  if (!stored) return;
  const { subscription } = stored;
  await updateDelivery(tx, scope, attempted(delivery, result, tx.now, random));
  tx.countOutcome({ of: "event delivery", as: EventDeliveryVerdict[result.verdict].toLowerCase() });
  const failingSince = isAccepted(result) ? null : (stored.failingSince ?? tx.now);
  const progress = { failing_since: failingSince, due_at: await nextDueAt(tx.db, scope, subscription.id) };
  await setSubscriptionProgress(tx, scope, subscription.id, progress);
  if (failingSince === null || subscription.state !== EventSubscriptionState.ACTIVE) return;
  const reason = pauseReason(result, failingSince, tx.now);
  if (reason === undefined) return;
  await updateSubscription(tx, scope, subscription, { after: pausedByServer(subscription, tx.now), reason });
}

function attempted(before: EventDelivery, result: AttemptResult, now: number, random: number): EventDelivery {
  const { verdict, statusCode, detail, durationMs } = result;
  const at = timestampFromMs(now - durationMs);
  const attempt = create(EventDelivery_AttemptSchema, { at, verdict, statusCode, detail, durationMs });
  const attempts = [...before.attempts, attempt].slice(-KEPT_ATTEMPTS);
  const { nextAttemptAt: _, ...delivery } = before;
  if (isAccepted(result)) return { ...delivery, attempts, state: State.DELIVERED };
  // A requested redelivery is tried only once; the person who requested it sees the result.
  const next =
    before.state === State.PENDING ? nextAttemptAt(attempts.length, result, now, random) : undefined;
  if (next === undefined) return { ...delivery, attempts, state: State.FAILED };
  return { ...delivery, attempts, state: State.PENDING, nextAttemptAt: timestampFromMs(next) };
}

/** Returns the time of the next attempt: 0 (immediately) for a redelivery and when nothing waits. */
async function nextDueAt(db: Reader, scope: Scope, id: string): Promise<number> {
  const next = await findNextUnsent(db, scope, id);
  return next?.state === State.PENDING ? dueAt(next) : 0;
}

/** Returns the delivery to send next: a redelivery, or else the first waiting event. */
async function findNextUnsent(db: Reader, scope: Scope, id: string): Promise<EventDelivery | undefined> {
  const [redelivery] = await findUnsent(db, scope, id, State.REDELIVERING, 1);
  if (redelivery) return redelivery;
  const [first] = await findUnsent(db, scope, id, State.PENDING, 1);
  return first;
}

function dueAt({ nextAttemptAt: at }: EventDelivery): number {
  return at ? timestampMs(at) : 0;
}
