import { create } from "@bufbuild/protobuf";
import { violationsToProto } from "@bufbuild/protovalidate";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { DomainError } from "../../domain/error.ts";
import { PolicyDenied } from "../../domain/policy/policy-decision.ts";
import { StoreUnavailable } from "../../store/store.ts";
import { ConstraintViolated } from "../check.ts";

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
};

/** The names of a call for the log and for an internal error. */
export interface CallNames {
  readonly requestId: string;
  readonly operation: string;
}

/**
 * Messages in which the protocol layer blames the server, when the caller's bytes
 * cannot be decoded or decompressed.
 */
const MALFORMED = /^(parse binary: |decompression failed$|received compressed envelope, )/;

/**
 * Messages of the JavaScript engine at one of its limits. The protocol layer
 * passes them on as if the caller's bytes were at fault, with a text that helps
 * nobody.
 */
const ENGINE =
  /^(?:parse binary: |serialize binary: )?(?:Maximum call stack size exceeded|Invalid (?:string|array|typed array|array buffer) length|Array buffer allocation failed|Set maximum size exceeded|Map maximum size exceeded|Maximum BigInt size exceeded)/;

/** The message in which the protocol layer names an operation's size limit. */
const LIMIT = / readMaxBytes (\d+)/;

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
  if (error.reason === ErrorReason.UNAUTHENTICATED) leaving.metadata.set("WWW-Authenticate", CHALLENGE);
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
  if (ENGINE.test(error.rawMessage)) return internal(error, call, report);
  const malformed = error.code === Code.Internal && MALFORMED.test(error.rawMessage);
  if (malformed || error.code === Code.InvalidArgument) {
    return writeConnectError(ErrorReason.BODY_MALFORMED, redactErrorMessage(error.rawMessage));
  }
  if (error.code === Code.ResourceExhausted) {
    const limit = LIMIT.exec(error.rawMessage)?.[1];
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

/**
 * The decoded field, such as `cannot decode field
 * service.v1.GetProjectRequest.project_id from JSON`, and the reason.
 */
const DECODING = /^(cannot decode (?:\w+ )?[\w.]+ from JSON)(?:: | |$)(.*)$/s;

/**
 * The reasons for which JSON is no message, as far as they quote nothing of the
 * caller's. An unknown name is included where it could be meant as a field's
 * name, since the caller looks for it; secrets contain digits or signs.
 */
const REASONS: readonly RegExp[] = [
  /^key "[A-Za-z_]{1,40}" is unknown$/,
  // The forms of time-forms.ts, which the next reason would cut off.
  /^expected (?:seconds|an existing instant) [\w ,.:-]+$/,
  /^(?:list item #\d+: )?expected (?:enum [\w.]+|\w+(?: \(\w+\))?)/,
  /^(?:list item|map value) must not be null$/,
  /^(?:oneof )?set multiple times(?: by \w+ and \w+)?$/,
  /^maximum recursion depth of \d+ reached$/,
  /^invalid RFC 3339 string$/,
  /^must be from \S+ to \S+ inclusive$/,
  /^path names must be lowerCamelCase$/,
  /^the escape \\u[\da-fA-F]{4} is half a character without its other half$/,
  /^The encoded data was not valid for encoding utf-8$/,
  /^Unexpected end of JSON input$/,
  /^[^"\d]{1,80} JSON at position \d+(?: \(line \d+ column \d+\))?$/,
];

/** The parser's message when it quotes the text around an error. */
const QUOTING = / is not valid JSON$/;

/** The values that the protocol layer quotes from headers. */
const HEADER_VALUES: readonly [RegExp, string][] = [
  [/^(unknown compression) ".*"(: supported encodings are .*)$/s, "$1$2"],
  [/^(protocol error: invalid (?:connect|grpc) timeout value): .*$/s, "$1"],
  [/^(\S+ must be "\w+"): got ".*"$/s, "$1"],
];

/**
 * Returns a message of the protocol layer about a request, without the values of
 * the request that it quotes: one of them may be a secret in a wrong place. Its
 * words about JSON are included only where they are known to hold none.
 */
export function redactErrorMessage(message: string): string {
  const decoding = DECODING.exec(message);
  if (!decoding) {
    if (QUOTING.test(message)) return "the body is no valid JSON";
    return HEADER_VALUES.reduce((text, [quoting, rest]) => text.replace(quoting, rest), message);
  }
  const [, what = "", why = ""] = decoding;
  if (QUOTING.test(why)) return `${what}: the body is no valid JSON`;
  for (const reason of REASONS) {
    const known = reason.exec(why);
    if (known) return `${what}: ${known[0]}`;
  }
  return what;
}
