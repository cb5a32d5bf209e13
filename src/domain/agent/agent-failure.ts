import type { Failure } from "#gen/runner/v1/work_service_pb.js";
import { AgentExecutionFailureReason as Reason } from "#gen/service/v1/agent_pb.js";
import type { AgentFailure } from "./agent-execution.ts";

/** The failure reasons that runners report; any other is the agent's own failure. */
export const RUNNER_REASONS: Readonly<Record<string, Reason>> = {
  environment_failed: Reason.ENVIRONMENT,
  model_unreachable: Reason.LLM_INTEGRATION,
  agent_interrupted: Reason.SERVICE,
  agent_unknown: Reason.SERVICE,
  policy_unsupported: Reason.SERVICE,
  refused_by_service: Reason.SERVICE,
  runner_fault: Reason.SERVICE,
  work_unknown: Reason.SERVICE,
  work_unusable: Reason.SERVICE,
};

/** Returns the failure of an execution from its runner's report. */
export function failureOfAgent(reported: Pick<Failure, "reason" | "message"> | undefined): AgentFailure {
  const reason =
    reported && Object.hasOwn(RUNNER_REASONS, reported.reason) ? RUNNER_REASONS[reported.reason] : undefined;
  return {
    reason: reason ?? Reason.AGENT_EXECUTION,
    message: reported?.message || "the agent failed; the runner gave no reason",
  };
}
