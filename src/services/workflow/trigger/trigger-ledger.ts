import { clone, create, fromJson, toJson } from "@bufbuild/protobuf";
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
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findTriggerEvent, insertTriggerEvent } from "../../../store/workflow/workflow-trigger-event.ts";

/** Something that could start a workflow, and what came of it. */
export interface TriggerOccurrence {
  readonly workflowId: string;
  readonly source: WorkflowTriggerEvent_Source;
  readonly verdict: TriggerVerdict;
  /** When it came due, in milliseconds since 1970 UTC; the instant of the write when it is left out. */
  readonly atMs?: number;
  /** Place of the trigger in the workflow's list; left out where it concerns no single one. */
  readonly triggerIndex?: number | undefined;
  /** Why, for people; it holds no secret. */
  readonly reason?: string;
  readonly executionId?: string;
  readonly deliveryId?: string | undefined;
  readonly pullRequest?: PullRequest | undefined;
  readonly pullRequestEvent?: PullRequestEvent | undefined;
  readonly redeliveredEventId?: string | undefined;
  /** One of a kind within the workflow; left out where the same may be entered again. */
  readonly dedupeKey?: string | undefined;
  readonly payload?: TriggerPayload;
}

/** The data that a redelivery needs besides the entry itself, never the proof of the delivery. No response shows it. */
export interface TriggerPayload {
  /** The values of parameters that the start was given. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** JSON of the body that ran the manual trigger; or, of a long one, the texts of its fields. One of the two, see StoredBody. */
  readonly body?: string;
  readonly fields?: Readonly<Record<string, string | null>>;
  /** The context of StartWorkflow that stood in for the manual trigger's. */
  readonly contextOverride?: WorkflowTriggerContext | undefined;
  /** The facts of a delivery about the entry's pull request: every event, and each URL of its repository. */
  readonly events?: readonly PullRequestEvent[];
  readonly repositoryUrls?: readonly string[];
  /** Why a delivery, or its parameters, could not be read. */
  readonly problem?: string;
  /** Why a delivery asked for nothing. */
  readonly reason?: string;
}

/**
 * Enters something in the ledger of its workflow, in the transaction that did
 * what the entry tells. A key that an entry holds already fails the write: ask
 * findTriggerEventByKey first.
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
    payload: payloadText(occurrence.payload ?? {}),
  });
  return event;
}

/**
 * Enters that what made an entry arrived again.
 *
 * @param eventId of an entry that is there
 * @param reason how it is known again, for people
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
export function readPayload(text: string): TriggerPayload {
  const { contextOverride, ...rest } = JSON.parse(text);
  return contextOverride
    ? { ...rest, contextOverride: fromJson(WorkflowTriggerContextSchema, contextOverride) }
    : rest;
}

function payloadText({ contextOverride, ...rest }: TriggerPayload): string {
  return JSON.stringify({
    ...rest,
    ...(contextOverride && { contextOverride: toJson(WorkflowTriggerContextSchema, contextOverride) }),
  });
}
