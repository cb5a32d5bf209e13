import { type Violation, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { RuleViolation } from "../../api/src/rules.ts";

/** A failed call as a program reads it. */
export interface Failure {
  /** The kind of failure. */
  readonly code: Code;
  /** The reason from the contract's catalogue; `UNSPECIFIED` when no Chartroom server has responded. */
  readonly reason: ErrorReason;
  /** The name of the reason, such as `PROJECT_NAME_TAKEN`, for logs; `UNSPECIFIED` for none. */
  readonly reasonName: string;
  /** The facts that the catalogue defines for this reason, such as the `field`. A key may be absent. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The first 20 rules of the contract that the request breaks. */
  readonly violations: readonly RuleViolation[];
  /** The server's sentence, for a person. */
  readonly message: string;
  /** Identifies the call in the server's log; empty when no server has responded. */
  readonly requestId: string;
}

/** Returns everything that a call has thrown as a Failure. */
export function failureOf(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const [detail] = error.findDetails(ErrorDetailSchema);
  const reason = detail?.reason ?? ErrorReason.UNSPECIFIED;
  const [violations] = error.findDetails(ViolationsSchema);
  return {
    code: error.code,
    reason,
    // A server of a later release has reasons that have no name here.
    reasonName: ErrorReason[reason] ?? String(reason),
    metadata: detail?.metadata ?? {},
    violations: (violations?.violations ?? []).map(violationOf),
    message: error.rawMessage,
    requestId: error.metadata.get("x-request-id") ?? "",
  };
}

/** Returns the reason of a failed call from the contract's catalogue. */
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
