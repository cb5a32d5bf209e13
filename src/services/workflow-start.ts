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
import { manualTrigger } from "../domain/trigger-match.ts";
import { checkContext } from "../domain/workflow-check.ts";
import { refuseContext } from "../domain/workflow-policy.ts";
import { refuseBorrowedContext, refuseStart } from "../domain/workflow-start.ts";
import { findPolicies } from "../store/organization-policies.ts";
import type { WriteTransaction } from "../store/store.ts";
import { findExecution } from "../store/workflow-execution.ts";
import { writeAsCaller } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { retryExecution } from "./execution-retry.ts";
import { type ExecutionStart, startExecution } from "./execution-start.ts";
import { ownedWorkflow } from "./owned-workflow.ts";
import { recordTriggerEvent } from "./trigger-ledger.ts";
import { checkContextReferences } from "./workflow-references.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Starts a workflow by hand, and enters that in its ledger. A start that is refused leaves nothing. */
export function startWorkflow({ store }: Dependencies, req: StartWorkflowRequest, ctx: HandlerContext) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const workflow = await ownedWorkflow(tx, ctx, caller, req.workflowId);
    refuseStart(workflow);
    const start = await manualStart(tx, caller, workflow, req);
    const execution = await startExecution(tx, start);
    const { triggerIndex } = start;
    await recordTriggerEvent(tx, caller, {
      workflowId: workflow.id,
      source: WorkflowTriggerEvent_Source.MANUAL,
      verdict: TriggerVerdict.STARTED,
      executionId: execution.id,
      payload: { parameters: req.parameters, contextOverride: req.contextOverride },
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
 * A start by hand: over the context that was given, else over the manual trigger's.
 *
 * @throws DomainError CONTEXT_MISSING without either; VALUE_UNUSABLE, NOT_FOUND,
 *   PENDING_DELETION, PHASE_UNSUITABLE, PolicyDenied for what the given one names
 */
export async function manualStart(
  tx: WriteTransaction,
  caller: Caller,
  workflow: Workflow,
  { contextOverride, parameters }: Pick<StartWorkflowRequest, "contextOverride" | "parameters">,
): Promise<ExecutionStart> {
  const { context, triggerIndex } = contextOverride
    ? { context: await usableOverride(tx, caller, workflow, contextOverride), triggerIndex: null }
    : manualContext(workflow);
  const trigger = create(WorkflowExecutionTriggerSchema, { trigger: { case: "manual", value: {} }, context });
  const { organizationId, subject: creator } = caller;
  return { organizationId, workflow, trigger, triggerIndex, creator, parameters };
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
  const manual = manualTrigger(spec?.triggers ?? []);
  if (!manual) throw contextMissing();
  return manual;
}
