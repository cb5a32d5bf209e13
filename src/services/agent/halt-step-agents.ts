import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { isStepRunning } from "../../domain/agent/step-agent.ts";
import { findOpenStepAgents } from "../../store/agent/agent-execution-search.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { haltAgentExecution } from "./halt-agent-execution.ts";

/** Stops the agent executions of an action whose step is no longer running. */
export async function haltStepAgents(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
): Promise<void> {
  for (const stored of await findOpenStepAgents(tx.db, scope, action.id)) {
    if (!isStepRunning(action, stored.stepKey ?? "")) await haltAgentExecution(tx, scope, stored);
  }
}
