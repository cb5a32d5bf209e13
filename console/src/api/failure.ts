import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** How a page shows a failed call. */
export interface Failure {
  /** The server's sentence. */
  readonly sentence: string;
  readonly reason: ErrorReason;
  /** The name of the reason, such as `QUEUE_CHANGED`; empty when the server gave none. */
  readonly reasonName: string;
  /** The field that the error is about, as the contract names it; empty for none. */
  readonly field: string;
  /** The server's request id of the call, for its operator; empty when no server answered. */
  readonly requestId: string;
  /** True when nobody is signed in any longer. */
  readonly isSignedOut: boolean;
}

/** Returns how a page shows an error: the server's sentence, or that the server did not answer. */
export function failureOf(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const [detail] = error.findDetails(ErrorDetailSchema);
  const reason = detail?.reason ?? ErrorReason.UNSPECIFIED;
  const answered = error.metadata.has("x-request-id");
  return {
    sentence: answered ? answeredWith(error) : unanswered(error),
    reason,
    reasonName: reason === ErrorReason.UNSPECIFIED ? "" : (ErrorReason[reason] ?? ""),
    field: detail?.metadata.field ?? detail?.metadata.path ?? violatedFields(error),
    requestId: error.metadata.get("x-request-id") ?? "",
    isSignedOut: answered && error.code === Code.Unauthenticated,
  };
}

/** Returns the server's sentence. Its sentence about the session is for programs, which have no sign-in page. */
const answeredWith = ({ code, rawMessage }: ConnectError): string =>
  code === Code.Unauthenticated
    ? "You are no longer signed in. Sign in and try again."
    : capitalized(rawMessage);

function unanswered(error: ConnectError): string {
  if (error.code === Code.Canceled) return "The call was cancelled.";
  return "The server did not answer. It may be restarting, or the network is down.";
}

/** Returns the paths of the fields that break a rule of the contract. */
function violatedFields(error: ConnectError): string {
  const [violations] = error.findDetails(ViolationsSchema);
  const paths = violations?.violations.map(({ field }) =>
    (field?.elements ?? []).map(({ fieldName }) => fieldName).join("."),
  );
  return [...new Set(paths)].filter((path) => path !== "").join(", ");
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
