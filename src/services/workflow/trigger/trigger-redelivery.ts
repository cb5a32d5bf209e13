import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type Workflow,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import type { RedeliverWorkflowTriggerEventRequest } from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { ParsedDelivery } from "../../../domain/workflow/trigger/parsed-delivery.ts";
import { manualTrigger, requireRedeliverable } from "../../../domain/workflow/trigger/trigger-match.ts";
import type { WriteTransaction } from "../../../store/store.ts";
import { findTriggerEvent } from "../../../store/workflow/workflow-trigger-event.ts";
import { writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { startExecution } from "../execution/execution-start.ts";
import { resolveManualStart } from "../execution/workflow-start.ts";
import { getStartableWorkflow } from "../owned-workflow.ts";
import { fireTimeTrigger } from "./time-trigger.ts";
import { parsePayload, recordTriggerEvent, type TriggerPayload } from "./trigger-ledger.ts";
import { disabledReason, startAndRecord } from "./trigger-start.ts";
import { fireWebhook } from "./webhook-triggers.ts";

/** A redelivery: the ledger entry, its workflow and the caller. */
interface Redelivery {
  readonly event: WorkflowTriggerEvent;
  readonly payload: TriggerPayload;
  readonly workflow: Workflow;
  readonly caller: Caller;
}

/**
 * Processes the event of a ledger entry again, as the caller and with the current workflow. An entry of one trigger
 * fires that trigger only.
 */
export function redeliverWorkflowTriggerEvent(
  { store }: Pick<ServiceDependencies, "store">,
  { triggerEventId }: RedeliverWorkflowTriggerEventRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const found = await findTriggerEvent(tx.db, caller, triggerEventId);
    if (!found) throw notFound("workflow trigger event");
    const { event } = found;
    const workflow = await getStartableWorkflow(tx, ctx, caller, event.workflowId);
    requireRedeliverable(event);
    const payload = parsePayload(found.payload);
    return { triggerEvents: await redeliver(tx, { event, payload, workflow, caller }) };
  });
}

async function redeliver(tx: WriteTransaction, redelivery: Redelivery): Promise<WorkflowTriggerEvent[]> {
  const { event, payload, workflow, caller } = redelivery;
  const { organizationId, subject: creator } = caller;
  switch (event.source) {
    case Source.MANUAL:
      return [await redeliverManualStart(tx, redelivery)];
    case Source.TIME: {
      const instantMs = event.at ? timestampMs(event.at) : 0;
      const triggerIndex = event.triggerIndex ?? 0;
      const redeliveredEventId = event.id;
      return [
        await fireTimeTrigger(tx, {
          organizationId,
          workflow,
          triggerIndex,
          instantMs,
          creator,
          redeliveredEventId,
        }),
      ];
    }
    case Source.WEBHOOK:
      return fireWebhook(tx, {
        organizationId,
        workflow,
        parsed: restoreDelivery(event, payload),
        creator,
        sourceSetters: [creator],
        deliveryId: event.deliveryId,
        redelivered: { eventId: event.id, triggerIndex: event.triggerIndex },
      });
    case Source.UNSPECIFIED:
      throw new Error(`the entry ${event.id} has no source`);
  }
}

async function redeliverManualStart(
  tx: WriteTransaction,
  { event, payload, workflow, caller }: Redelivery,
): Promise<WorkflowTriggerEvent> {
  const { contextOverride, parameters = {} } = payload;
  const entry = {
    workflowId: workflow.id,
    source: Source.MANUAL,
    triggerIndex: contextOverride ? undefined : manualTrigger(workflow.spec?.triggers ?? [])?.triggerIndex,
    redeliveredEventId: event.id,
    payload,
  };
  const disabled = disabledReason(workflow);
  if (disabled !== undefined) {
    return recordTriggerEvent(tx, caller, { ...entry, verdict: TriggerVerdict.DISABLED, reason: disabled });
  }
  return startAndRecord(tx, caller, entry, async () => {
    const request = { parameters: { ...parameters }, ...(contextOverride && { contextOverride }) };
    return startExecution(tx, await resolveManualStart(tx, caller, workflow, request));
  });
}

function restoreDelivery(event: WorkflowTriggerEvent, payload: TriggerPayload): ParsedDelivery {
  const { events, repositoryUrls = [], parameters, body, fields = {}, problem, reason } = payload;
  const { pullRequest } = event;
  if (pullRequest && events) {
    return { kind: "pull_request", delivery: { events, pullRequest, repositoryUrls } };
  }
  if (parameters) {
    // An entry of an earlier release may have neither a body nor fields.
    return body === undefined
      ? { kind: "manual", parameters, body: undefined, fields }
      : { kind: "manual", parameters, body: JSON.parse(body) };
  }
  return problem === undefined
    ? { kind: "nothing", reason: reason ?? event.reason }
    : { kind: "problem", problem };
}
