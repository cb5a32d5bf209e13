import { create } from "@bufbuild/protobuf";
import { violationsToProto } from "@bufbuild/protovalidate";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { DomainError } from "../../domain/error.ts";
import { PolicyDenied } from "../../domain/policy/policy-decision.ts";
import type { TraceParent } from "../../domain/trace/trace-context.ts";
import { StoreUnavailable } from "../../store/store.ts";
import { ConstraintViolated } from "../check.ts";
import {
  isEngineLimit,
  isMalformed,
  isStreamReset,
  redactErrorMessage,
  sizeLimitIn,
} from "./protocol-texts.ts";

/** The one table from reasons to codes. */
export const CODE_OF_REASON: Readonly<Record<ErrorReason, Code>> = {
  [ErrorReason.UNSPECIFIED]: Code.Internal,
  [ErrorReason.UNAUTHENTICATED]: Code.Unauthenticated,
  [ErrorReason.PERMISSION_DENIED]: Code.PermissionDenied,
  [ErrorReason.NOT_FOUND]: Code.NotFound,
  [ErrorReason.OPERATION_UNKNOWN]: Code.NotFound,
  [ErrorReason.CONSTRAINT_VIOLATED]: Code.InvalidArgument,
  [ErrorReason.BODY_MALFORMED]: Code.InvalidArgument,
  [ErrorReason.TRANSPORT_UNSUPPORTED]: Code.Unimplemented,
  [ErrorReason.PAGE_TOKEN_INVALID]: Code.InvalidArgument,
  [ErrorReason.VALUE_UNUSABLE]: Code.InvalidArgument,
  [ErrorReason.PENDING_DELETION]: Code.FailedPrecondition,
  [ErrorReason.PHASE_UNSUITABLE]: Code.FailedPrecondition,
  [ErrorReason.IN_USE]: Code.FailedPrecondition,
  [ErrorReason.INITIALIZER_MISSING]: Code.FailedPrecondition,
  [ErrorReason.BODY_TOO_LARGE]: Code.ResourceExhausted,
  [ErrorReason.DEADLINE_EXCEEDED]: Code.DeadlineExceeded,
  [ErrorReason.NOT_BUILT]: Code.Unimplemented,
  [ErrorReason.UNAVAILABLE]: Code.Unavailable,
  [ErrorReason.INTERNAL]: Code.Internal,
  [ErrorReason.ACCOUNT_BLOCKED]: Code.PermissionDenied,
  [ErrorReason.POLICY_DENIED]: Code.FailedPrecondition,
  [ErrorReason.LAST_ADMINISTRATOR]: Code.FailedPrecondition,
  [ErrorReason.OWN_ACCOUNT]: Code.FailedPrecondition,
  [ErrorReason.IDEMPOTENCY_KEY_REUSED]: Code.AlreadyExists,
  [ErrorReason.NOT_ENTERPRISE]: Code.FailedPrecondition,
  [ErrorReason.SECURITY_POLICY_UNASSIGNABLE]: Code.FailedPrecondition,
  [ErrorReason.FIELD_MASK_INVALID]: Code.InvalidArgument,
  [ErrorReason.LEASE_LOST]: Code.Aborted,
  [ErrorReason.WORKFLOW_DISABLED]: Code.FailedPrecondition,
  [ErrorReason.CONTEXT_MISSING]: Code.FailedPrecondition,
  [ErrorReason.EXECUTOR_UNFIT]: Code.FailedPrecondition,
  [ErrorReason.CREDENTIAL_MISSING]: Code.FailedPrecondition,
  [ErrorReason.QUEUE_CHANGED]: Code.Aborted,
  [ErrorReason.QUEUE_FULL]: Code.ResourceExhausted,
  [ErrorReason.AGENT_MISSING]: Code.FailedPrecondition,
  [ErrorReason.TEXT_DECEPTIVE]: Code.InvalidArgument,
  [ErrorReason.SIZE_EXCEEDED]: Code.InvalidArgument,
  [ErrorReason.BODY_TOO_COMPLEX]: Code.InvalidArgument,
  [ErrorReason.BODY_BUDGET_EXCEEDED]: Code.ResourceExhausted,
  [ErrorReason.CREDENTIAL_WITHHELD]: Code.FailedPrecondition,
  [ErrorReason.STORAGE_QUOTA_EXCEEDED]: Code.ResourceExhausted,
  [ErrorReason.TOO_MANY_STREAMS]: Code.ResourceExhausted,
  [ErrorReason.APPROVAL_CHANGED]: Code.Aborted,
  [ErrorReason.DRAFT_CHANGED]: Code.Aborted,
  [ErrorReason.PUSH_REFUSED]: Code.FailedPrecondition,
  [ErrorReason.MANAGED_BY_PROVIDER]: Code.FailedPrecondition,
  [ErrorReason.VALUE_TAKEN]: Code.AlreadyExists,
  [ErrorReason.LIMIT_REACHED]: Code.FailedPrecondition,
  [ErrorReason.SECRETS_WITHHELD]: Code.FailedPrecondition,
  [ErrorReason.TOKEN_EXPIRED]: Code.Unauthenticated,
  [ErrorReason.ENVIRONMENT_UNREACHABLE]: Code.FailedPrecondition,
  [ErrorReason.TOO_MANY_QUESTIONS]: Code.ResourceExhausted,
  [ErrorReason.RUNNER_UNREACHABLE]: Code.FailedPrecondition,
  [ErrorReason.REPOSITORY_UNREADABLE]: Code.FailedPrecondition,
  [ErrorReason.TOO_MANY_CALLS]: Code.ResourceExhausted,
};

/** The names of a call for the log and for an internal error. */
export interface CallNames {
  readonly requestId: string;
  readonly operation: string;
  /** The trace of the call; absent for one without. */
  readonly trace?: TraceParent | undefined;
}

/** The challenge of every 401, wherever it originates (RFC 9110, section 11.6.1). */
const CHALLENGE = 'Bearer realm="chartroom"';

/** Reports an unexpected failure to the log. */
export type ReportFault = (error: unknown, call: CallNames) => void;

/**
 * Returns the error to send for anything that was thrown. Errors outside the
 * catalogue are reported and get a fixed text.
 */
export function toConnectError(thrown: unknown, call: CallNames, report: ReportFault): ConnectError {
  if (thrown instanceof DomainError) return fromDomain(thrown);
  if (thrown instanceof StoreUnavailable) {
    report(thrown, call);
    return writeConnectError(
      ErrorReason.UNAVAILABLE,
      thrown.problem === undefined
        ? "the database is busy: try again"
        : "the server cannot store changes: try again later; its log and /readyz say why",
    );
  }
  if (thrown instanceof ConnectError) return addDetail(thrown, call, report);
  return internal(thrown, call, report);
}

/** Writes an error of the catalogue that the edge itself sends. */
export function writeConnectError(
  reason: ErrorReason,
  message: string,
  metadata: Record<string, string> = {},
): ConnectError {
  return fromDomain(new DomainError(reason, message, metadata));
}

/** Converts an error of the catalogue to the form that is sent. */
export function fromDomain(error: DomainError): ConnectError {
  const leaving = new ConnectError(error.message, CODE_OF_REASON[error.reason]);
  if (leaving.code === Code.Unauthenticated) leaving.metadata.set("WWW-Authenticate", CHALLENGE);
  leaving.details.push({
    desc: ErrorDetailSchema,
    value: create(ErrorDetailSchema, { reason: error.reason, metadata: { ...error.metadata } }),
  });
  if (error instanceof ConstraintViolated) {
    const [value, desc] = violationsToProto([...error.violations]);
    leaving.details.push({ desc, value });
  }
  if (error instanceof PolicyDenied) {
    leaving.details.push({ desc: PolicyDecisionSchema, value: error.decision });
  }
  return leaving;
}

/** Returns whether an error already has a reason. */
export function hasReason(error: ConnectError): boolean {
  return error.details.some(
    (detail) => ("desc" in detail ? detail.desc.typeName : detail.type) === ErrorDetailSchema.typeName,
  );
}

/**
 * Gives errors of the protocol layer their place in the catalogue, and reports
 * those that are the server's fault.
 */
export function addDetail(error: ConnectError, call: CallNames, report: ReportFault): ConnectError {
  if (hasReason(error)) return error;
  if (error.code === Code.Internal && isStreamReset(error.rawMessage)) {
    return new ConnectError("the caller cancelled the call", Code.Canceled);
  }
  if (isEngineLimit(error.rawMessage)) return internal(error, call, report);
  const malformed = error.code === Code.Internal && isMalformed(error.rawMessage);
  if (malformed || error.code === Code.InvalidArgument) {
    return writeConnectError(ErrorReason.BODY_MALFORMED, redactErrorMessage(error.rawMessage));
  }
  if (error.code === Code.ResourceExhausted) {
    const limit = sizeLimitIn(error.rawMessage);
    return limit ? bodyTooLarge(limit) : writeConnectError(ErrorReason.BODY_TOO_LARGE, error.rawMessage);
  }
  if (error.code === Code.DeadlineExceeded)
    return writeConnectError(ErrorReason.DEADLINE_EXCEEDED, "the deadline of the request passed");
  // The rest of this code comes from the layer itself: an unsupported compression, a second message.
  if (error.code === Code.Unimplemented) {
    return writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, redactErrorMessage(error.rawMessage));
  }
  if (error.code === Code.Internal || error.code === Code.Unknown) {
    return internal(error, call, report);
  }
  return error;
}

function internal(error: unknown, call: CallNames, report: ReportFault): ConnectError {
  report(error, call);
  return writeConnectError(ErrorReason.INTERNAL, "internal error", { request_id: call.requestId });
}

/** Returns the error for a body that is larger than its operation accepts. */
export function bodyTooLarge(limitBytes: number | string): ConnectError {
  const message = `the request is larger than the ${limitBytes} bytes that the operation takes`;
  return writeConnectError(ErrorReason.BODY_TOO_LARGE, message, { limit_bytes: String(limitBytes) });
}
