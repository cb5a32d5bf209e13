import type { WorkflowStep_Report } from "#gen/service/v1/workflow_pb.js";
import { askAgent } from "../agent/step-agent.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepResult, StepRun } from "./action-step.ts";
import { runShell, type ShellCommand } from "./step-shell.ts";

/** As much as the contract takes of one output (ReportProgressRequest.StepProgress.outputs): more would be refused. */
const MOST_VALUE_BYTES = 16_386;

/**
 * Collects the outputs of a report, in their order: what commands print and
 * agents answer. The service reads and judges them.
 *
 * @throws WorkFailure output_too_long, and as commands and agents fail
 */
export async function collectOutputs(
  run: StepRun,
  { outputs: specs }: WorkflowStep_Report,
): Promise<StepResult> {
  const outputs: Record<string, Uint8Array> = {};
  const agentExecutionIds: string[] = [];
  for (const { key, extraction } of specs) {
    if (extraction.case === "prompt") {
      const { text, agentExecutionId } = await askAgent(run, key);
      outputs[key] = valueIn(text, key);
      agentExecutionIds.push(agentExecutionId);
    } else {
      const name = `the command of the output ${key}`;
      outputs[key] = await printed(run, { name, command: extraction.value ?? "" });
    }
  }
  return { outputs, agentExecutionIds };
}

async function printed(run: StepRun, command: ShellCommand): Promise<Buffer> {
  const value = await runShell(run, { ...command, keepBytes: MOST_VALUE_BYTES + 1 });
  if (value.length > MOST_VALUE_BYTES) throw tooLong(`${command.name} printed`);
  return run.assignment.secrets.mask(value);
}

/** Agents set off what they say by white space, which is no part of the value. */
function valueIn(answer: string, key: string): Buffer {
  const value = Buffer.from(answer.trim());
  if (value.length > MOST_VALUE_BYTES) throw tooLong(`the agent asked for the output ${key} answered`);
  return value;
}

function tooLong(said: string): WorkFailure {
  return new WorkFailure("output_too_long", `${said} more than ${MOST_VALUE_BYTES} bytes`);
}
