import { AgentExecutionFailureReason, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type { StepResult, StepRun } from "./action-step.ts";
import { pause } from "./back-off.ts";
import { WorkFailure } from "./work-failure.ts";

/** How often is looked whether an agent has answered. */
const POLL_MS = 500;

/** Has an agent do what its prompt says; its answer goes to the step's log. */
export async function runAgent(run: StepRun): Promise<StepResult> {
  await askAgent(run, "");
  return {};
}

/**
 * Starts the agent of the step, or finds the one that was started before, and
 * waits until it has answered all that it was told. Any runner process over the
 * same folders may drive it, this one too.
 *
 * @param outputKey of a report step, the key of the output that the agent is asked for; otherwise empty
 * @returns what it answered, which is in the step's log as well
 * @throws WorkFailure agent_failed
 * @throws the reason of the step's signal when that ended it
 */
export async function askAgent(
  { assignment, stepIndex, log, signal }: StepRun,
  outputKey: string,
): Promise<string> {
  const { lease, secrets } = assignment;
  const { agentExecutionId } = await lease.ask((client, name, options) =>
    client.startStepAgent({ ...name, stepIndex, outputKey }, options),
  );
  for (;;) {
    const { agentExecution, lastAnswer, done } = await lease.ask((client, name, options) =>
      client.getStepAgent({ ...name, agentExecutionId }, options),
    );
    signal.throwIfAborted();
    if (done) {
      const answer = secrets.maskText(lastAnswer);
      await log.write(Buffer.from(answer === "" || answer.endsWith("\n") ? answer : `${answer}\n`));
      if (agentExecution?.status?.phase === Phase.STOPPED) throw failureOf(agentExecution.status);
      return answer;
    }
    await pause(POLL_MS, signal);
    signal.throwIfAborted();
  }
}

/** A step's agent is stopped when its step is over, and not before. */
function failureOf(status: {
  readonly failureReason: AgentExecutionFailureReason;
  readonly failureMessage: string;
}): WorkFailure {
  const hasFailed = status.failureReason !== AgentExecutionFailureReason.UNSPECIFIED;
  const message = hasFailed ? status.failureMessage : "the agent was stopped before its answer was read";
  return new WorkFailure("agent_failed", message);
}
