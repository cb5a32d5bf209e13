import type { HandlerContext } from "@connectrpc/connect";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type {
  CancelWorkflowExecutionActionRequest,
  CancelWorkflowExecutionRequest,
} from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";
import { writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { requireOwnershipOrRole } from "../../policy/shared-role.ts";
import { cancelAction, cancelExecution } from "./execution-cancel.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Cancels an execution. The caller must have started it, or may change its workflow. */
export function cancelWorkflowExecution(
  { store }: Dependencies,
  { workflowExecutionId }: CancelWorkflowExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await findExecution(tx.db, caller, workflowExecutionId);
    if (!stored) throw notFound("workflow execution");
    await requireMayCancel(tx, caller, ctx, stored.execution);
    await cancelExecution(tx, caller, workflowExecutionId);
    return {};
  });
}

/** Cancels one action. The caller must have started its execution, or may change the workflow. */
export function cancelWorkflowExecutionAction(
  { store }: Dependencies,
  { workflowExecutionActionId }: CancelWorkflowExecutionActionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const action = await findAction(tx.db, caller, workflowExecutionActionId);
    const stored = await findExecution(tx.db, caller, action?.metadata?.workflowExecutionId ?? "");
    if (!stored) throw notFound("workflow execution action");
    await requireMayCancel(tx, caller, ctx, stored.execution);
    await cancelAction(tx, caller, workflowExecutionActionId);
    return {};
  });
}

async function requireMayCancel(
  tx: WriteTransaction,
  caller: Caller,
  ctx: HandlerContext,
  { metadata }: WorkflowExecution,
): Promise<void> {
  const workflow = await findWorkflow(tx.db, caller, metadata?.workflowId ?? "");
  const needed = { type: "workflow", id: workflow?.id ?? "", role: ResourceRole.ADMIN } as const;
  await requireOwnershipOrRole(tx.db, ctx, caller, needed, metadata?.creator, workflow?.metadata?.creator);
}
