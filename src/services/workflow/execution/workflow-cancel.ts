import type { HandlerContext } from "@connectrpc/connect";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type {
  CancelWorkflowExecutionActionRequest,
  CancelWorkflowExecutionRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";
import { requireOwnership, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { cancelAction, cancelExecution } from "./execution-cancel.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Cancels an execution. The caller must have started it or created its workflow. */
export function cancelWorkflowExecution(
  { store }: Dependencies,
  { workflowExecutionId }: CancelWorkflowExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await findExecution(tx.db, caller, workflowExecutionId);
    if (!stored) throw notFound("workflow execution");
    await requireExecutionOwnership(tx, caller, ctx, stored.execution);
    await cancelExecution(tx, caller, workflowExecutionId);
    return {};
  });
}

/** Cancels one action. The caller must have started its execution or created the workflow. */
export function cancelWorkflowExecutionAction(
  { store }: Dependencies,
  { workflowExecutionActionId }: CancelWorkflowExecutionActionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const action = await findAction(tx.db, caller, workflowExecutionActionId);
    const stored = await findExecution(tx.db, caller, action?.metadata?.workflowExecutionId ?? "");
    if (!stored) throw notFound("workflow execution action");
    await requireExecutionOwnership(tx, caller, ctx, stored.execution);
    await cancelAction(tx, caller, workflowExecutionActionId);
    return {};
  });
}

async function requireExecutionOwnership(
  tx: WriteTransaction,
  scope: Scope,
  ctx: HandlerContext,
  { metadata }: WorkflowExecution,
): Promise<void> {
  const workflow = await findWorkflow(tx.db, scope, metadata?.workflowId ?? "");
  requireOwnership(ctx, metadata?.creator, workflow?.metadata?.creator);
}
