import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** What a page shows of a failed call. */
export interface Failure {
  /** The server's sentence. */
  readonly sentence: string;
  readonly reason: ErrorReason;
  /** The name of the reason, such as `QUEUE_CHANGED`; empty where the server gave none. */
  readonly reasonName: string;
  /** The field that is meant, as the contract names it; empty where none is. */
  readonly field: string;
  /** The server's id of the call, for its operator; empty where no server answered. */
  readonly requestId: string;
  /** True where nobody is signed in any more. */
  readonly isSignedOut: boolean;
}

/** Returns what a page shows of an error: the server's sentence, or which of the two did not answer. */
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

/** The server's sentence; that about its session is for programs, which have no page to sign in on. */
const answeredWith = ({ code, rawMessage }: ConnectError): string =>
  code === Code.Unauthenticated
    ? "You are no longer signed in: sign in again, then try it once more."
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
