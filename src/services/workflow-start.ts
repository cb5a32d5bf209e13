import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  TriggerVerdict,
  type Workflow,
  WorkflowExecutionTriggerSchema,
  type WorkflowTriggerContext,
  WorkflowTriggerEvent_Source,
} from "#gen/service/v1/workflow_pb.js";
import type { RetryFailedActionsRequest, StartWorkflowRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { contextMissing, notFound, valueUnusable } from "../domain/error.ts";
import { checkContext } from "../domain/workflow-check.ts";
import { refuseContext } from "../domain/workflow-policy.ts";
import { refuseBorrowedContext, refuseStart } from "../domain/workflow-start.ts";
import { findPolicies } from "../store/organization-policies.ts";
import type { WriteTransaction } from "../store/store.ts";
import { findExecution } from "../store/workflow-execution.ts";
import { writeAsCaller } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { retryExecution } from "./execution-retry.ts";
import { startExecution } from "./execution-start.ts";
import { ownedWorkflow } from "./owned-workflow.ts";
import { recordTriggerEvent } from "./trigger-ledger.ts";
import { checkContextReferences } from "./workflow-references.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Starts a workflow by hand, and enters that in its ledger. A start that is refused leaves nothing. */
export function startWorkflow({ store }: Dependencies, req: StartWorkflowRequest, ctx: HandlerContext) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await ownedWorkflow(tx, ctx, caller, req.workflowId);
    refuseStart(workflow);
    const { contextOverride, parameters } = req;
    const { context, triggerIndex } = contextOverride
      ? { context: await usableOverride(tx, caller, workflow, contextOverride), triggerIndex: null }
      : manualContext(workflow);
    const trigger = create(WorkflowExecutionTriggerSchema, {
      trigger: { case: "manual", value: {} },
      context,
    });
    const execution = await startExecution(tx, {
      organizationId: caller.organizationId,
      workflow,
      trigger,
      triggerIndex,
      creator: caller.subject,
      parameters,
    });
    await recordTriggerEvent(tx, caller, {
      workflowId: workflow.id,
      source: WorkflowTriggerEvent_Source.MANUAL,
      verdict: TriggerVerdict.STARTED,
      executionId: execution.id,
      payload: { parameters, contextOverride },
      ...(triggerIndex !== null && { triggerIndex }),
    });
    return { workflowExecution: execution };
  });
}

/** Starts an execution of the failed actions of another; it is no firing of a trigger, and so not in the ledger. */
export function retryFailedActions(
  { store }: Dependencies,
  { workflowExecutionId }: RetryFailedActionsRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await findExecution(tx.db, caller, workflowExecutionId);
    if (!stored) throw notFound("workflow execution");
    const workflow = await ownedWorkflow(tx, ctx, caller, stored.execution.metadata?.workflowId ?? "");
    return { workflowExecution: await retryExecution(tx, caller, stored, workflow, caller.subject) };
  });
}

/**
 * A context that the request brings along. What it names must be there and fit
 * for the caller to use; every member may use the organization's projects and classes.
 *
 * @throws DomainError PERMISSION_DENIED, VALUE_UNUSABLE, NOT_FOUND, PENDING_DELETION,
 *   PHASE_UNSUITABLE; PolicyDenied
 */
async function usableOverride(
  tx: WriteTransaction,
  caller: Caller,
  workflow: Workflow,
  context: WorkflowTriggerContext,
): Promise<WorkflowTriggerContext> {
  refuseBorrowedContext(workflow, caller);
  if (context.context.case === "fromTrigger") {
    throw valueUnusable(
      "contextOverride.fromTrigger",
      "no event brings a context when a workflow is started by hand: name projects, repositories or an agent",
    );
  }
  checkContext(context, "contextOverride");
  refuseContext(await findPolicies(tx.db, caller), context, caller.role);
  await checkContextReferences(tx.db, caller, [context]);
  return context;
}

/** @throws DomainError CONTEXT_MISSING for a workflow without a manual trigger */
function manualContext({ spec }: Workflow): { context: WorkflowTriggerContext; triggerIndex: number } {
  const triggers = spec?.triggers ?? [];
  const triggerIndex = triggers.findIndex(({ trigger }) => trigger.case === "manual");
  const context = triggers[triggerIndex]?.context;
  if (!context) throw contextMissing();
  return { context, triggerIndex };
}
