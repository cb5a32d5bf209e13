import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import {
  type EventDelivery,
  EventDeliverySchema,
  EventDeliveryState,
  EventSubscriptionState,
} from "#gen/service/v1/event_subscription_pb.js";
import { WorkflowExecutionConclusion as Conclusion } from "#gen/service/v1/workflow_pb.js";
import {
  dependsOnMoment,
  HISTORY_PRUNED,
  kindFor,
  type Moment,
  resourcesOf,
} from "../../../domain/access/event-subscription/event-kinds.ts";
import { hasUnsent, insertDeliveries } from "../../../store/access/event-subscription/event-delivery.ts";
import {
  findSubscription,
  type StoredSubscription,
  setSubscriptionProgress,
} from "../../../store/access/event-subscription/event-subscription.ts";
import { findAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findRecordedDiff, type RecordedDiff } from "../../../store/record/audit-log.ts";
import { type EventRow, findEventsAfter } from "../../../store/record/event.ts";
import { storedTypes } from "../../../store/resource-type.ts";
import {
  type Reader,
  type Scope,
  type Store,
  SYSTEM,
  type WriteTransaction,
  within,
} from "../../../store/store.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";

/** Number of events read at a time. */
const EVENTS_PER_READ = 100;

/** How many sequence numbers to search at a time for events of certain kinds, which may be rare. */
const NUMBERS_PER_READ = 10_000;

/** Maximum number of waiting entries. Further events wait in the record, which contains them anyway. */
const MAX_WAITING = 100;

/** Number of skipped events after which the position in the record is stored. */
const NUMBERS_PER_UPDATE = 200;

/** An event that a subscription receives, and the kind under which it receives it. */
interface QueuedEvent {
  readonly kind: string;
  readonly event: Pick<EventRow, "resourceType" | "resourceId" | "operation" | "sequence" | "at">;
}

/**
 * Adds the next events of a subscription to its ledger, each once and in order. One commit stores the entries and the
 * position up to which the record was read.
 *
 * @param mustUpdate true to store the position even if no event is added
 */
export async function queueEvents(
  store: Pick<Store, "reader" | "write">,
  scope: Scope,
  id: string,
  operation: string,
  mustUpdate: boolean,
): Promise<void> {
  const stored = await findSubscription(store.reader, scope, id);
  if (!stored || stored.subscription.state !== EventSubscriptionState.ACTIVE) return;
  if (await hasUnsent(store.reader, scope, id, EventDeliveryState.PENDING, MAX_WAITING)) return;
  const { queued, reached } = await nextEvents(store, scope, stored);
  const passed = reached - stored.sequence;
  if (passed <= 0 || (queued.length === 0 && !mustUpdate && passed < NUMBERS_PER_UPDATE)) return;
  await store.write(
    SYSTEM,
    operation,
    async (tx) => {
      const present = await findSubscription(tx.db, scope, id);
      // Another process or a change of the subscription came first, so the events are read again.
      if (!present || present.sequence !== stored.sequence || hasChanged(present, stored)) return;
      await insertDeliveries(
        tx,
        scope,
        queued.map((each) => newDelivery(tx, id, each)),
      );
      await setSubscriptionProgress(tx, scope, id, { sequence: reached });
    },
    within(scope),
  );
}

/** Returns whether a subscription now receives other events, or none. */
function hasChanged(
  { subscription: present }: StoredSubscription,
  { subscription }: StoredSubscription,
): boolean {
  return present.state !== subscription.state || present.eventKinds.join() !== subscription.eventKinds.join();
}

async function nextEvents(
  { reader: db }: Pick<Store, "reader">,
  scope: Scope,
  { subscription, sequence }: StoredSubscription,
): Promise<{ readonly queued: readonly QueuedEvent[]; readonly reached: number }> {
  const { eventKinds: kinds } = subscription;
  const resources = resourcesOf(kinds);
  const upTo = sequence + NUMBERS_PER_READ;
  const only = resources && { types: storedTypes(resources), upTo };
  const { events, head, pruned } = await findEventsAfter(db, scope, sequence, EVENTS_PER_READ, only);
  const queued: QueuedEvent[] = sequence < pruned ? [historyPruned(scope, pruned, events[0]?.at)] : [];
  for (const event of events) {
    const moment = dependsOnMoment(kinds, event) ? await findMoment(db, scope, event) : undefined;
    const kind = kindFor(kinds, event, moment);
    if (kind !== undefined) queued.push({ kind, event });
  }
  const end = only ? Math.min(head, upTo) : head;
  const last = events.length < EVENTS_PER_READ ? end : (events.at(-1)?.sequence ?? end);
  return { queued, reached: Math.max(last, pruned) };
}

/** Returns the event that informs a subscription that events were removed before it could receive them. */
function historyPruned({ organizationId }: Scope, sequence: number, at: number | undefined): QueuedEvent {
  return {
    kind: HISTORY_PRUNED,
    event: {
      resourceType: ResourceType.ORGANIZATION,
      resourceId: organizationId,
      operation: ResourceOperation.UPDATE,
      sequence,
      at: at ?? 0,
    },
  };
}

function newDelivery(
  tx: WriteTransaction,
  subscriptionId: string,
  { kind, event }: QueuedEvent,
): EventDelivery {
  return create(EventDeliverySchema, {
    id: tx.newId(),
    eventSubscriptionId: subscriptionId,
    eventKind: kind,
    resourceType: event.resourceType,
    resourceId: event.resourceId,
    operation: event.operation,
    sequence: BigInt(event.sequence),
    happenedAt: timestampFromMs(event.at || tx.now),
    state: EventDeliveryState.PENDING,
    nextAttemptAt: timestampFromMs(tx.now),
  });
}

/**
 * Returns the moment of a resource's life that an event is about; undefined for other changes. The phase comes from
 * the record of the change. Whether an ended resource failed comes from the current resource.
 */
async function findMoment(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const { resourceType, operation } = event;
  if (resourceType === ResourceType.APPROVAL)
    return operation === ResourceOperation.CREATE ? "approval.asked" : undefined;
  if (operation !== ResourceOperation.UPDATE) return undefined;
  if (resourceType === ResourceType.AGENT_EXECUTION) return momentOfRun(db, scope, event);
  if (resourceType === ResourceType.WORKFLOW_EXECUTION) return momentOfExecution(db, scope, event);
  return undefined;
}

async function momentOfRun(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const diff = await findRecordedDiff(db, scope, event.sequence);
  if (hasReached(diff, "PHASE_WAITING_FOR_INPUT")) return "agent_execution.waits_for_input";
  if (!hasReached(diff, "PHASE_STOPPED")) return undefined;
  const status = (await findAgentExecution(db, scope, event.resourceId))?.execution.status;
  const isFailed =
    status !== undefined &&
    (status.failureReason !== AgentExecutionFailureReason.UNSPECIFIED || status.failureMessage !== "");
  return isFailed ? "agent_execution.failed" : undefined;
}

async function momentOfExecution(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const diff = await findRecordedDiff(db, scope, event.sequence);
  if (!hasReached(diff, "WORKFLOW_EXECUTION_PHASE_COMPLETED")) return undefined;
  const stored = await findExecution(db, scope, event.resourceId);
  const conclusion = stored?.toResponse().status?.conclusion;
  return conclusion === Conclusion.FAILED || conclusion === Conclusion.PARTIALLY_FAILED
    ? "workflow_execution.failed"
    : undefined;
}

const hasReached = (diff: RecordedDiff, phase: string): boolean => diff["status.phase"]?.[1] === phase;
