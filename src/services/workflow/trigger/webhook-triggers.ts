import { create } from "@bufbuild/protobuf";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type Workflow,
  WorkflowExecutionTriggerSchema,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import type { ParsedDelivery } from "../../../domain/workflow/trigger/parsed-delivery.ts";
import type { PullRequestDelivery } from "../../../domain/workflow/trigger/pull-request-event.ts";
import { startParametersOf, storedBody } from "../../../domain/workflow/trigger/start-parameters.ts";
import {
  contextOfTrigger,
  forkWorkOf,
  manualTrigger,
  matchingTriggers,
  projectIdsOf,
  type TriggerMatch,
} from "../../../domain/workflow/trigger/trigger-match.ts";
import { findProjectRemotes } from "../../../store/project/project-index.ts";
import type { WriteTransaction } from "../../../store/store.ts";
import { findTriggerEventByKey } from "../../../store/workflow/workflow-trigger-event.ts";
import { startExecution } from "../execution/execution-start.ts";
import { recordTriggerEvent, type TriggerPayload } from "./trigger-ledger.ts";
import { disabledReason, startAndRecord } from "./trigger-start.ts";

/** A delivery whose sender was authenticated. */
export interface VerifiedDelivery {
  readonly organizationId: string;
  readonly workflow: Workflow;
  readonly parsed: ParsedDelivery;
  /** Creator of the executions that the delivery starts. */
  readonly creator: Subject;
  /** The subjects that may have sent it. They count as the setters of the repository that an event names. */
  readonly sourceSetters: readonly Subject[];
  /** The sender's id of the delivery. */
  readonly deliveryId?: string | undefined;
  /** Set for a redelivery, which is never a duplicate. */
  readonly redelivered?: {
    readonly eventId: string;
    /** The only trigger to fire; undefined for all that match. */
    readonly triggerIndex: number | undefined;
  };
}

/** Fires the triggers that match a delivery, and records one ledger entry for each, at least one in total. */
export async function fireWebhook(
  tx: WriteTransaction,
  delivery: VerifiedDelivery,
): Promise<WorkflowTriggerEvent[]> {
  const { workflow, parsed } = delivery;
  const disabled = disabledReason(workflow);
  if (disabled !== undefined) return [await recordDelivery(tx, delivery, TriggerVerdict.DISABLED, disabled)];
  switch (parsed.kind) {
    case "pull_request":
      return firePullRequestTriggers(tx, delivery, parsed.delivery);
    case "manual":
      return [await fireManualTrigger(tx, delivery, parsed)];
    case "problem":
    case "malformed":
      return [await recordDelivery(tx, delivery, TriggerVerdict.REFUSED, parsed.problem)];
    case "nothing":
      return [await recordDelivery(tx, delivery, TriggerVerdict.NO_MATCH, parsed.reason)];
  }
}

async function firePullRequestTriggers(
  tx: WriteTransaction,
  delivered: VerifiedDelivery,
  delivery: PullRequestDelivery,
): Promise<WorkflowTriggerEvent[]> {
  const triggers = delivered.workflow.spec?.triggers ?? [];
  const remotes = await findProjectRemotes(tx.db, delivered, projectIdsOf(triggers));
  const only = delivered.redelivered?.triggerIndex;
  const matches = matchingTriggers(triggers, delivery, remotes).filter(
    ({ triggerIndex }) => only === undefined || triggerIndex === only,
  );
  if (matches.length === 0) {
    const reason = "no pull-request trigger of the workflow takes this event of this repository";
    return [await recordDelivery(tx, delivered, TriggerVerdict.NO_MATCH, reason)];
  }
  const entries: WorkflowTriggerEvent[] = [];
  for (const match of matches) entries.push(await firePullRequestTrigger(tx, delivered, delivery, match));
  return entries;
}

async function firePullRequestTrigger(
  tx: WriteTransaction,
  delivered: VerifiedDelivery,
  { pullRequest, repositoryUrls }: PullRequestDelivery,
  { triggerIndex, event, deduplicationKey }: TriggerMatch,
): Promise<WorkflowTriggerEvent> {
  const { workflow, redelivered } = delivered;
  const trigger = workflow.spec?.triggers[triggerIndex];
  if (!trigger) throw new Error(`a match names trigger ${triggerIndex}, which the workflow does not have`);
  const entry = {
    ...entryOf(delivered),
    triggerIndex,
    pullRequest,
    pullRequestEvent: event,
    payload: { events: [event], repositoryUrls },
  };
  const earlier = redelivered
    ? undefined
    : await findTriggerEventByKey(tx.db, delivered, workflow.id, deduplicationKey);
  if (earlier) {
    return recordTriggerEvent(tx, delivered, {
      ...entry,
      verdict: TriggerVerdict.DUPLICATE,
      reason: "this event of the pull request started an execution at this revision before",
      executionId: earlier.workflowExecutionId,
    });
  }
  const dedupeKey = redelivered ? undefined : deduplicationKey;
  return startAndRecord(tx, delivered, { ...entry, dedupeKey }, () =>
    startExecution(tx, {
      ...delivered,
      triggerIndex,
      trigger: create(WorkflowExecutionTriggerSchema, {
        trigger: { case: "pullRequest", value: pullRequest },
        context: contextOfTrigger(trigger, pullRequest),
        ...forkWorkOf(trigger, pullRequest),
      }),
      parameters: {},
    }),
  );
}

async function fireManualTrigger(
  tx: WriteTransaction,
  delivered: VerifiedDelivery,
  reading: Extract<ParsedDelivery, { kind: "manual" }>,
): Promise<WorkflowTriggerEvent> {
  const { spec } = delivered.workflow;
  const manual = manualTrigger(spec?.triggers ?? []);
  if (!manual) {
    const reason =
      "the delivery names no host's event, and the workflow has no manual trigger, which it would run: add one";
    return recordDelivery(tx, delivered, TriggerVerdict.NO_MATCH, reason);
  }
  const { triggerIndex, context } = manual;
  const entry = { ...entryOf(delivered), triggerIndex, payload: payloadOf(delivered) };
  return startAndRecord(tx, delivered, entry, () =>
    startExecution(tx, {
      ...delivered,
      triggerIndex,
      trigger: create(WorkflowExecutionTriggerSchema, { trigger: { case: "manual", value: {} }, context }),
      parameters: startParametersOf(spec?.parameters ?? [], reading),
      sourceSetters: undefined,
    }),
  );
}

/** Records a delivery that is not about a single trigger. */
function recordDelivery(
  tx: WriteTransaction,
  delivered: VerifiedDelivery,
  verdict: TriggerVerdict,
  reason: string,
): Promise<WorkflowTriggerEvent> {
  const { parsed } = delivered;
  const delivery = parsed.kind === "pull_request" ? parsed.delivery : undefined;
  return recordTriggerEvent(tx, delivered, {
    ...entryOf(delivered),
    verdict,
    reason,
    pullRequest: delivery?.pullRequest,
    pullRequestEvent: delivery?.events.length === 1 ? delivery.events[0] : undefined,
    payload: payloadOf(delivered),
  });
}

function entryOf({ workflow, deliveryId, redelivered }: VerifiedDelivery) {
  return {
    source: Source.WEBHOOK,
    workflowId: workflow.id,
    deliveryId,
    redeliveredEventId: redelivered?.eventId,
  };
}

function payloadOf({ workflow, parsed }: VerifiedDelivery): TriggerPayload {
  switch (parsed.kind) {
    case "pull_request":
      return { events: parsed.delivery.events, repositoryUrls: parsed.delivery.repositoryUrls };
    case "manual":
      return { parameters: parsed.parameters, ...storedBody(workflow.spec?.parameters ?? [], parsed) };
    case "problem":
    case "malformed":
      return { problem: parsed.problem };
    case "nothing":
      return { reason: parsed.reason };
  }
}
