import type { WorkflowStep_Report } from "#gen/service/v1/workflow_pb.js";
import type { StepResult, StepRun } from "./action-step.ts";
import { runShell } from "./step-shell.ts";
import { WorkFailure } from "./work-failure.ts";

/** As much as the contract takes of one output (ReportProgressRequest.StepProgress.outputs): more would be refused. */
const MOST_VALUE_BYTES = 16_386;

/**
 * Collects the outputs of a report, in their order. The service reads and judges
 * them.
 *
 * @throws WorkFailure unimplemented for an output that an agent is to answer, output_too_long
 */
export async function collectOutputs(
  run: StepRun,
  { outputs: specs }: WorkflowStep_Report,
): Promise<StepResult> {
  const outputs: Record<string, Uint8Array> = {};
  for (const { key, extraction } of specs) {
    if (extraction.case !== "command") {
      throw new WorkFailure(
        "unimplemented",
        `the output ${key} is to be answered by an agent, and agents are not built yet: use a command`,
      );
    }
    const name = `the command of the output ${key}`;
    const keepBytes = MOST_VALUE_BYTES + 1;
    const value = await runShell(run, { name, command: extraction.value, keepBytes });
    if (value.length > MOST_VALUE_BYTES) {
      throw new WorkFailure("output_too_long", `${name} printed more than ${MOST_VALUE_BYTES} bytes`);
    }
    outputs[key] = run.assignment.secrets.mask(value);
  }
  return { outputs };
}
