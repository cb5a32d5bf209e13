import type { HandlerContext } from "@connectrpc/connect";
import type { DeleteWorkflowRequest } from "#gen/service/v1/workflow_service_pb.js";
import { deletingWorkflow } from "../../domain/workflow/workflow.ts";
import { updateWorkflow } from "../../store/workflow/workflow.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { cancelExecutionsOf } from "./execution/execution-cancel.ts";
import { getOwnedWorkflow } from "./owned-workflow.ts";

/** Marks a workflow for removal, which jobs/workflow-removal.ts does once its executions have ended. */
export function deleteWorkflow(
  { store }: Pick<ServiceDependencies, "store">,
  { workflowId, force }: DeleteWorkflowRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const before = await getOwnedWorkflow(tx, ctx, caller, workflowId);
    const after = deletingWorkflow(before, tx.now);
    if (after) await updateWorkflow(tx, caller, before, after);
    if (force) await cancelExecutionsOf(tx, caller, workflowId);
    return {};
  });
}
