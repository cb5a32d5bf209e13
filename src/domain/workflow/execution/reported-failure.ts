import { create } from "@bufbuild/protobuf";
import type { Failure } from "#gen/runner/v1/work_service_pb.js";
import {
  type WorkflowError,
  WorkflowErrorCode,
  WorkflowErrorSchema,
} from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { workflowError } from "./workflow-error.ts";

/** Returns a runner's failure report as a workflow error; of a step where one is given. */
export function reportedError(failure: Failure | undefined, step?: WorkflowStep): WorkflowError {
  const code = codeOf(step, failure?.reason);
  if (!failure || (failure.reason === "" && failure.message === "")) {
    const error = workflowError("step_failed", "the runner gave no reason for the failure");
    error.code = code;
    return error;
  }
  const { reason, message, retriable } = failure;
  return create(WorkflowErrorSchema, {
    code,
    reason: reason || "step_failed",
    message,
    retry: { retriable },
  });
}

/** Returns the part of the system in which a step does its work; an agent may run a report. */
function codeOf(step: WorkflowStep | undefined, reason = ""): WorkflowErrorCode {
  if (reason.startsWith("agent_")) return WorkflowErrorCode.AGENT_ERROR;
  switch (step?.step.case) {
    case "agent":
      return WorkflowErrorCode.AGENT_ERROR;
    case "pullRequest":
      return WorkflowErrorCode.UNSPECIFIED;
    default:
      return WorkflowErrorCode.ENVIRONMENT_ERROR;
  }
}
