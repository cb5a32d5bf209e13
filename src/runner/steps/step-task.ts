import type { WorkflowStep_Task } from "#gen/service/v1/workflow_pb.js";
import type { StepResult, StepRun } from "./action-step.ts";
import { runShell } from "./step-shell.ts";

/** Runs the command of a task. */
export async function runTask(run: StepRun, { command }: WorkflowStep_Task): Promise<StepResult> {
  await runShell(run, { name: "the command", command });
  return {};
}
