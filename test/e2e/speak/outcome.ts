import { fromBinary } from "@bufbuild/protobuf";
import { type Violation, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, type ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/** What came of a call, in one form whatever the client speaks. */
export type Outcome =
  | { readonly answer: unknown }
  | {
      /** Such as `not_found`. */
      readonly code: string;
      readonly message: string;
      /** Without its prefix; empty when the error has no ErrorDetail. */
      readonly reason: string;
      readonly metadata: Readonly<Record<string, string>>;
      readonly violations: readonly { readonly rule: string; readonly field: string }[];
    };

/** Calls an operation of ProjectService, such as `GetProject`, with a request in JSON. */
export type Speak = (operation: string, request: object) => Promise<Outcome>;

/** An error as Connect's clients see it. */
export function failure(error: ConnectError): Outcome {
  const [detail] = error.findDetails(ErrorDetailSchema);
  const [violations] = error.findDetails(ViolationsSchema);
  return outcome(codeToString(error.code), error.rawMessage, detail, violations?.violations);
}

/** An error in the JSON of the Connect protocol, read from the bytes of its details. */
export function failureFromJson(error: {
  readonly code: string;
  readonly message: string;
  readonly details?: readonly { readonly type: string; readonly value: string }[];
}): Outcome {
  const bytes = (type: string) => {
    const found = error.details?.find((each) => each.type === type);
    return found && new Uint8Array(Buffer.from(found.value, "base64"));
  };
  const detail = bytes("service.v1.ErrorDetail");
  const violations = bytes("buf.validate.Violations");
  return outcome(
    error.code,
    error.message,
    detail && fromBinary(ErrorDetailSchema, detail),
    violations && fromBinary(ViolationsSchema, violations).violations,
  );
}

function outcome(
  code: string,
  message: string,
  detail: ErrorDetail | undefined,
  violations: readonly Violation[] = [],
): Outcome {
  return {
    code,
    message,
    reason: detail ? ErrorReason[detail.reason] : "",
    metadata: detail?.metadata ?? {},
    violations: violations.map(({ ruleId, field }) => ({
      rule: ruleId,
      field: (field?.elements ?? []).map(({ fieldName }) => fieldName).join("."),
    })),
  };
}

/** The name of a numeric code of gRPC. */
export function codeName(code: number): string {
  return Code[code] === undefined ? `code ${code}` : codeToString(code);
}
