import type { GetStepAgentResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentExecutionFailureReason, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { pause } from "../protocol/back-off.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepResult, StepRun } from "../steps/action-step.ts";

/** Interval of the checks whether an agent has answered or has stopped. */
const POLL_MS = 500;
/** Maximum time that an agent takes to stop. An execution that is still open after that has lost its runner. */
const MAX_STOP_MS = 30_000;

/** An agent's answer and the execution that gave it. */
export interface AgentAnswer {
  readonly text: string;
  readonly agentExecutionId: string;
}

/** Runs the step's agent and writes its answer to the step's log. */
export async function runAgent(run: StepRun): Promise<StepResult> {
  const { agentExecutionId } = await askAgent(run, "");
  return { agentExecutionIds: [agentExecutionId] };
}

/**
 * Starts the step's agent, or finds the one that was started before, and waits until it has answered all its inputs.
 * Any runner process that shares the folders may drive the agent, including this one.
 *
 * @param outputKey for a report step, the key of the output that the agent produces; otherwise empty
 * @returns the answer, which is also written to the step's log
 * @throws WorkFailure agent_failed
 * @throws the reason of the step's signal when the signal ended the wait
 */
export async function askAgent(run: StepRun, outputKey: string): Promise<AgentAnswer> {
  const { assignment, stepIndex, log } = run;
  const { agentExecutionId } = await assignment.lease.call((client, name, options) =>
    client.startStepAgent({ ...name, stepIndex, outputKey }, options),
  );
  const answered = await pollAgent(run, agentExecutionId, ({ done }) => done);
  const text = assignment.secrets.maskText(answered.lastAnswer);
  await log.write(Buffer.from(text === "" || text.endsWith("\n") ? text : `${text}\n`));
  const { status } = answered.agentExecution ?? {};
  if (status?.phase === Phase.STOPPED) throw failureOf(status);
  return { text, agentExecutionId };
}

/** Waits until the agents of a finished step no longer work in the action's folders; at most {@link MAX_STOP_MS}. */
export async function untilAgentsStopped(
  run: Pick<StepRun, "assignment" | "signal">,
  agentExecutionIds: readonly string[],
): Promise<void> {
  const until = performance.now() + MAX_STOP_MS;
  for (const id of agentExecutionIds) {
    const isGone = ({ agentExecution }: GetStepAgentResponse) =>
      agentExecution?.status?.phase === Phase.STOPPED || performance.now() > until;
    await pollAgent(run, id, isGone);
  }
}

/** Polls an agent's execution until `fits` returns true. */
async function pollAgent(
  { assignment, signal }: Pick<StepRun, "assignment" | "signal">,
  agentExecutionId: string,
  fits: (found: GetStepAgentResponse) => boolean,
): Promise<GetStepAgentResponse> {
  for (;;) {
    signal.throwIfAborted();
    const found = await assignment.lease.call((client, name, options) =>
      client.getStepAgent({ ...name, agentExecutionId }, options),
    );
    if (fits(found)) return found;
    await pause(POLL_MS, signal);
  }
}

/**
 * Returns the failure of a stopped execution. A step's agent is normally stopped only after its step is over.
 */
function failureOf(status: {
  readonly failureReason: AgentExecutionFailureReason;
  readonly failureMessage: string;
}): WorkFailure {
  const hasFailed = status.failureReason !== AgentExecutionFailureReason.UNSPECIFIED;
  const message = hasFailed ? status.failureMessage : "the agent was stopped before its answer was read";
  return new WorkFailure("agent_failed", message);
}
