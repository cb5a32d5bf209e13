import { toJson } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { writeConnectError } from "../error/error.ts";

/**
 * Most bytes of a result's JSON: what a model can still read in one go. A client gets it twice, as structured content and
 * as its text.
 */
export const MAX_RESULT_BYTES = 128 * 1024;

/** The result of a tool. */
export interface ToolResult {
  readonly value: object;
  /** `value` as JSON. */
  readonly text: string;
  readonly isError: boolean;
  /** True where texts of the answer were cut to fit. */
  readonly isShortened: boolean;
  /** True for the answer of an earlier call with the same key. */
  readonly isReplayed: boolean;
}

/** Lengths to which texts are cut, one after the other, until a result fits. */
const TEXT_LENGTHS = [65_536, 16_384, 4_096, 1_024];

/** Lengths to which lists are cut where the call has had its effect and must not look failed. */
const LIST_LENGTHS = [10, 1, 0];

/** Texts that mean nothing once they are cut. */
const WHOLE: ReadonlySet<string> = new Set(["nextToken", "next"]);

export interface FitOptions {
  /** True if asking again for less does no harm: a result that does not fit is an error then. */
  readonly isReadOnly: boolean;
  readonly isReplayed?: boolean;
}

/**
 * Returns the result of an answer, of no more than {@link MAX_RESULT_BYTES}: long texts are cut, and end with how many
 * characters are left out.
 *
 * @throws ConnectError VALUE_UNUSABLE for what a read answers and does not fit even so
 */
export function resultOf(answer: object, { isReadOnly, isReplayed = false }: FitOptions): ToolResult {
  const whole = JSON.stringify(answer);
  if (fits(whole)) return { value: answer, text: whole, isError: false, isShortened: false, isReplayed };
  const shortened = (value: object, text: string) => ({
    ...{ value, text, isError: false, isReplayed },
    isShortened: true,
  });
  let least = answer;
  for (const length of TEXT_LENGTHS) {
    least = withShortTexts(answer, length) as object;
    const text = JSON.stringify(least);
    if (fits(text)) return shortened(least, text);
  }
  if (isReadOnly) {
    const message = `the answer is larger than ${MAX_RESULT_BYTES} bytes, even with its texts cut: ask for fewer with pagination.pageSize, or filter`;
    throw writeConnectError(ErrorReason.VALUE_UNUSABLE, message, { field: "pagination.pageSize" });
  }
  for (const length of LIST_LENGTHS) {
    const value = withShortLists(least, length) as object;
    const text = JSON.stringify(value);
    if (fits(text)) return shortened(value, text);
  }
  return shortened({}, "{}");
}

/** Returns the result that tells of an error: its code, its reason and what is known of it. */
export function errorResult(error: ConnectError): ToolResult {
  const [detail] = error.findDetails(ErrorDetailSchema);
  const [violations] = error.findDetails(ViolationsSchema);
  const [policyDecision] = error.findDetails(PolicyDecisionSchema);
  const value = {
    code: codeToString(error.code),
    message: error.rawMessage,
    // `reason` and `metadata`.
    ...(detail && (toJson(ErrorDetailSchema, detail) as object)),
    ...(violations && { violations: toJson(ViolationsSchema, violations) }),
    ...(policyDecision && { policyDecision: toJson(PolicyDecisionSchema, policyDecision) }),
  };
  const short = withShortTexts(value, 4_096) as object;
  return { value: short, text: JSON.stringify(short), isError: true, isShortened: false, isReplayed: false };
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_RESULT_BYTES;
}

function withShortTexts(value: unknown, length: number, name = ""): unknown {
  if (typeof value === "string") {
    if (value.length <= length || WHOLE.has(name)) return value;
    return `${value.slice(0, length).toWellFormed()} … (${value.length - length} characters left out)`;
  }
  return mapped(value, (each, key) => withShortTexts(each, length, key));
}

function withShortLists(value: unknown, length: number): unknown {
  const short = Array.isArray(value) ? value.slice(0, length) : value;
  return mapped(short, (each) => withShortLists(each, length));
}

/** Returns a copy with what a list or an object holds replaced. */
function mapped(value: unknown, replace: (each: unknown, name: string) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => replace(each, ""));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, replace(each, name)]));
}
