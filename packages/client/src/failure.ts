import { type Violation, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { RuleViolation } from "../../api/src/rules.ts";

/** What a program reads of a failed call. */
export interface Failure {
  /** The kind of failure. */
  readonly code: Code;
  /** Why, by the catalogue of the contract; `UNSPECIFIED` where no server of Chartroom has answered. */
  readonly reason: ErrorReason;
  /** The name of the reason, such as `PROJECT_NAME_TAKEN`, for logs; `UNSPECIFIED` where there is none. */
  readonly reasonName: string;
  /** What the catalogue says of this reason, such as the `field`. A key may be absent. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The first 20 rules of the contract that the request does not keep. */
  readonly violations: readonly RuleViolation[];
  /** The server's sentence, for a person. */
  readonly message: string;
  /** Identifies the call in the server's log; empty where no server has answered. */
  readonly requestId: string;
}

/** Returns what a program reads of anything that a call has thrown. */
export function failureOf(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const [detail] = error.findDetails(ErrorDetailSchema);
  const reason = detail?.reason ?? ErrorReason.UNSPECIFIED;
  const [violations] = error.findDetails(ViolationsSchema);
  return {
    code: error.code,
    reason,
    // A server of a later release has reasons without a name here.
    reasonName: ErrorReason[reason] ?? String(reason),
    metadata: detail?.metadata ?? {},
    violations: (violations?.violations ?? []).map(violationOf),
    message: error.rawMessage,
    requestId: error.metadata.get("x-request-id") ?? "",
  };
}

/** Returns why a call has failed, by the catalogue of the contract. */
export function reasonOf(thrown: unknown): ErrorReason {
  return failureOf(thrown).reason;
}

function violationOf({ field, ruleId, message }: Violation): RuleViolation {
  const elements = (field?.elements ?? []).map(({ fieldName, subscript: { value } }) => {
    if (value === undefined) return fieldName;
    return `${fieldName}[${typeof value === "string" ? JSON.stringify(value) : value}]`;
  });
  return { field: elements.join("."), ruleId, message };
}
