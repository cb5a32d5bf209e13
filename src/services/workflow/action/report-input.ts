import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type { ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput } from "#gen/service/v1/workflow_service_pb.js";
import type { Reader, Scope } from "../../../store/store.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";
import { findOutputsOfActions } from "../../../store/workflow/workflow-output.ts";

/**
 * What the report action of an execution works on: the outputs of all other
 * actions, and for a retry also those of the executions before it whose actions
 * did not fail, since the others were done again.
 */
export async function reportInput(
  db: Reader,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<ActionOutput[]> {
  const outputs = await findOutputsOfActions(db, scope, execution.id, { withFailed: true });
  let retriedId = execution.metadata?.retriedExecutionId ?? "";
  while (retriedId !== "") {
    const retried = await findExecution(db, scope, retriedId);
    outputs.unshift(...(await findOutputsOfActions(db, scope, retriedId, { withFailed: false })));
    retriedId = retried?.execution.metadata?.retriedExecutionId ?? "";
  }
  return outputs;
}
