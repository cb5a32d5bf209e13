import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { FailureSchema } from "#gen/runner/v1/work_service_pb.js";
import { WorkFailure } from "./work-failure.ts";

/** Characters that the contract takes of a message (Failure.message). */
const MOST_CHARACTERS = 4_096;

/** An error in the form in which it is reported. What nobody foresaw is told in the runner's log only. */
export function failureReportOf(error: unknown): MessageInitShape<typeof FailureSchema> {
  const { reason, message, retriable } = toWorkFailure(error);
  return { reason, message: [...message].slice(0, MOST_CHARACTERS).join(""), retriable };
}

/** Whether the runner itself is to blame for an error. */
export function isFault(error: unknown): boolean {
  return !(error instanceof WorkFailure || error instanceof ConnectError);
}

function toWorkFailure(error: unknown): WorkFailure {
  if (error instanceof WorkFailure) return error;
  if (error instanceof ConnectError) return new WorkFailure("refused_by_service", error.rawMessage);
  return new WorkFailure("runner_fault", "the runner failed, and its log says how", true);
}
