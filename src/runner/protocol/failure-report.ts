import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { FailureSchema } from "#gen/runner/v1/work_service_pb.js";
import type { Secrets } from "../../domain/secrets.ts";
import type { Log } from "../../log.ts";
import { WorkFailure } from "./work-failure.ts";

/** The contract's maximum length of a message, in characters (Failure.message). */
const MAX_MESSAGE_CHARACTERS = 4_096;

/**
 * Converts an error to a failure report without secrets. Details of an unexpected error are only in the runner's log.
 */
export function failureReportOf(
  error: unknown,
  secrets: Pick<Secrets, "maskText">,
): MessageInitShape<typeof FailureSchema> {
  const { reason, message, retriable } = toWorkFailure(error);
  const masked = [...secrets.maskText(message)].slice(0, MAX_MESSAGE_CHARACTERS).join("");
  return { reason, message: masked, retriable };
}

/** Converts an error to a report, and logs the details if it is a fault of the runner. */
export function logFailure(
  log: Pick<Log, "error">,
  facts: object,
  error: unknown,
  secrets: Pick<Secrets, "maskText">,
): MessageInitShape<typeof FailureSchema> {
  if (isInternalError(error)) log.error({ ...facts, err: loggedError(error, secrets) }, "the runner failed");
  return failureReportOf(error, secrets);
}

/** Returns a copy of an error without secrets, for the runner's log. */
function loggedError(error: unknown, secrets: Pick<Secrets, "maskText">): Error {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const masked = new Error(secrets.maskText(message));
  masked.name = name;
  if (stack !== undefined) masked.stack = secrets.maskText(stack);
  return masked;
}

/** Returns whether an error is a fault of the runner. */
function isInternalError(error: unknown): boolean {
  return !(error instanceof WorkFailure || error instanceof ConnectError);
}

function toWorkFailure(error: unknown): WorkFailure {
  if (error instanceof WorkFailure) return error;
  if (error instanceof ConnectError) return new WorkFailure("refused_by_service", error.rawMessage);
  return new WorkFailure("runner_fault", "the runner failed, and its log says how", true);
}
