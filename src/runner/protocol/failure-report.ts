import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { FailureSchema } from "#gen/runner/v1/work_service_pb.js";
import { WorkFailure } from "./work-failure.ts";

/** Maximum of the contract for a message, in characters (Failure.message). */
const MAX_MESSAGE_CHARACTERS = 4_096;

/**
 * Returns an error in the form in which it is reported. The details of an
 * unexpected one are only in the runner's log.
 */
export function failureReportOf(error: unknown): MessageInitShape<typeof FailureSchema> {
  const { reason, message, retriable } = toWorkFailure(error);
  return { reason, message: [...message].slice(0, MAX_MESSAGE_CHARACTERS).join(""), retriable };
}

/** Returns whether an error is a fault of the runner itself. */
export function isInternalError(error: unknown): boolean {
  return !(error instanceof WorkFailure || error instanceof ConnectError);
}

function toWorkFailure(error: unknown): WorkFailure {
  if (error instanceof WorkFailure) return error;
  if (error instanceof ConnectError) return new WorkFailure("refused_by_service", error.rawMessage);
  return new WorkFailure("runner_fault", "the runner failed, and its log says how", true);
}
