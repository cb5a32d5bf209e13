import { clone, create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { PullRequest } from "#gen/service/v1/agent_pb.js";
import {
  type WorkflowTrigger_PullRequestEvent as PullRequestEvent,
  TriggerVerdict,
  type WorkflowTriggerContext,
  WorkflowTriggerContextSchema,
  type WorkflowTriggerEvent,
  type WorkflowTriggerEvent_Source,
  WorkflowTriggerEventSchema,
} from "#gen/service/v1/workflow_pb.js";
import { fromStoredJson } from "../../../store/json.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findTriggerEvent, insertTriggerEvent } from "../../../store/workflow/workflow-trigger-event.ts";

/** An event that could start a workflow, and its result. */
export interface TriggerOccurrence {
  readonly workflowId: string;
  readonly source: WorkflowTriggerEvent_Source;
  readonly verdict: TriggerVerdict;
  /** When it was due, in milliseconds since 1970 UTC; absent for the time of the write. */
  readonly atMs?: number;
  /** Index of the trigger in the workflow's list; absent for an event that is not about a single trigger. */
  readonly triggerIndex?: number | undefined;
  /** Reason of the verdict, for people, without secrets. */
  readonly reason?: string;
  readonly executionId?: string;
  readonly deliveryId?: string | undefined;
  readonly pullRequest?: PullRequest | undefined;
  readonly pullRequestEvent?: PullRequestEvent | undefined;
  readonly redeliveredEventId?: string | undefined;
  /** Unique within the workflow; absent for an event that may be recorded repeatedly. */
  readonly dedupeKey?: string | undefined;
  readonly payload?: TriggerPayload;
}

/**
 * The data that a redelivery needs in addition to the entry. It contains no signature or token, and responses do not
 * include it.
 */
export interface TriggerPayload {
  /** The parameters of the start. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** JSON of the body that fired the manual trigger, or, for a long body, the texts of its fields; see StoredBody. */
  readonly body?: string;
  readonly fields?: Readonly<Record<string, string | null>>;
  /** The context of StartWorkflow, which replaces the manual trigger's. */
  readonly contextOverride?: WorkflowTriggerContext | undefined;
  /** The events of the entry's pull request, and all URLs of its repository. */
  readonly events?: readonly PullRequestEvent[];
  readonly repositoryUrls?: readonly string[];
  /** Reason why a delivery, or its parameters, could not be parsed. */
  readonly problem?: string;
  /** Reason why a delivery requested nothing. */
  readonly reason?: string;
}

/**
 * Records an event in the trigger ledger, in the transaction that handled it. The write
 * fails if an entry has the same deduplication key: call findTriggerEventByKey first.
 */
export async function recordTriggerEvent(
  tx: WriteTransaction,
  scope: Scope,
  occurrence: TriggerOccurrence,
): Promise<WorkflowTriggerEvent> {
  const { workflowId, source, verdict, triggerIndex, pullRequest, pullRequestEvent } = occurrence;
  const event = create(WorkflowTriggerEventSchema, {
    id: tx.newId(),
    workflowId,
    at: timestampFromMs(occurrence.atMs ?? tx.now),
    source,
    verdict,
    reason: occurrence.reason ?? "",
    workflowExecutionId: occurrence.executionId ?? "",
    deliveryId: occurrence.deliveryId ?? "",
    redeliveredEventId: occurrence.redeliveredEventId ?? "",
    ...(triggerIndex !== undefined && { triggerIndex }),
    ...(pullRequest && { pullRequest }),
    ...(pullRequestEvent !== undefined && { pullRequestEvent }),
  });
  await insertTriggerEvent(tx, scope, event, {
    dedupeKey: occurrence.dedupeKey ?? null,
    payload: serializePayload(occurrence.payload ?? {}),
  });
  return event;
}

/**
 * Records the repetition of an event that the ledger already contains.
 *
 * @param eventId id of the existing entry
 * @param reason why it counts as a duplicate, for people
 */
export async function recordDuplicate(
  tx: WriteTransaction,
  scope: Scope,
  eventId: string,
  reason: string,
): Promise<WorkflowTriggerEvent> {
  const first = await findTriggerEvent(tx.db, scope, eventId);
  if (!first) throw new Error(`the ledger has no entry ${eventId}`);
  const copy = clone(WorkflowTriggerEventSchema, first.event);
  copy.id = tx.newId();
  copy.at = timestampFromMs(tx.now);
  copy.verdict = TriggerVerdict.DUPLICATE;
  copy.reason = reason;
  await insertTriggerEvent(tx, scope, copy, { dedupeKey: null, payload: first.payload });
  return copy;
}

/** Parses the stored payload of an entry. */
export function parsePayload(text: string): TriggerPayload {
  const { contextOverride, ...rest } = JSON.parse(text);
  return contextOverride
    ? { ...rest, contextOverride: fromStoredJson(WorkflowTriggerContextSchema, contextOverride) }
    : rest;
}

function serializePayload({ contextOverride, ...rest }: TriggerPayload): string {
  return JSON.stringify({
    ...rest,
    ...(contextOverride && { contextOverride: toJson(WorkflowTriggerContextSchema, contextOverride) }),
  });
}
