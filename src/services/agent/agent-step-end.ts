import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { isStepGoingOn } from "../../domain/agent/agent-step.ts";
import { findOpenAgentExecutions } from "../../store/agent/agent-execution-search.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { haltAgentExecution } from "./agent-end.ts";

/** Stops the agent runs that were started for steps of an action and whose step does not go on. */
export async function haltStepAgents(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
): Promise<void> {
  for (const run of await findOpenAgentExecutions(tx.db, scope, { stepOfActionId: action.id })) {
    if (!isStepGoingOn(action, run.stepKey ?? "")) await haltAgentExecution(tx, scope, run);
  }
}
