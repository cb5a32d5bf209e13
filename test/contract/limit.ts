import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { ConstraintViolated, createCheck } from "../../src/rpc/check.ts";
import { requestReference, schemaCheck } from "./openapi.ts";

export const ID = "0191f7a0-5c3e-7d1a-8b2f-000000000001";

/** Returns texts of so many characters: of one byte each, and of four bytes and two UTF-16 units each. */
export function texts(...lengths: number[]): string[] {
  return lengths.flatMap((length) => ["x".repeat(length), "😀".repeat(length)]);
}

/** Returns a list of so many equal elements. */
export function lists(element: JsonValue, ...lengths: number[]): JsonValue[][] {
  return lengths.map((length) => Array<JsonValue>(length).fill(element));
}

/** Returns a map of so many entries. */
export function maps(...sizes: number[]): JsonObject[] {
  return sizes.map((size) =>
    Object.fromEntries(Array.from({ length: size }, (_, index) => [`key_${index}`, ""])),
  );
}

/** Returns so many bytes as JSON carries them. */
export function bytes(...lengths: number[]): string[] {
  return lengths.map((length) => Buffer.alloc(length).toString("base64"));
}

/** Returns a copy of a request with a value at a path such as `triggers[0].context`. */
export function withValue(request: JsonValue, path: string, value: JsonValue): JsonObject {
  const copy = structuredClone(request);
  const keys = path.split(/[.[\]]+/).filter((key) => key !== "");
  let at = copy as Record<string, JsonValue | undefined>;
  for (const key of keys.slice(0, -1)) {
    at[key] ??= {};
    at = at[key] as typeof at;
  }
  at[keys.at(-1) as string] = value;
  return copy as JsonObject;
}

const check = createCheck();

/**
 * Rules that JSON Schema has no keyword for: the OpenAPI document tells them in a description. The keyword for a
 * number of bytes counts the characters of base64, four for three bytes.
 */
const DESCRIBED: ReadonlySet<string> = new Set([
  "archive_environments_after_whole_days",
  "bytes.max_len",
  "cost_amount",
  "disconnected_timeout",
  "duration.gte_lte",
  "duration.lte",
  "line_range",
  "max_parallel_lte_max_total",
  "maximum_environment_timeout",
  "one_kind_of_input",
  "outcome_stated",
  "parameters_unique",
  "review_content",
  "update_mask_count",
  "uri_or_remote",
]);

/**
 * Returns the violation that the rules of the contract find in a request; undefined when it is valid.
 *
 * @throws Error when the OpenAPI document does not agree
 */
export function complaint(schema: DescMessage, request: JsonValue): string | undefined {
  const message = fromJson(schema, request);
  try {
    check(schema, message);
  } catch (error) {
    if (!(error instanceof ConstraintViolated)) throw error;
    if (error.violations.some(({ ruleId }) => !DESCRIBED.has(ruleId)))
      agree(schema, message, false, error.message);
    return error.message;
  }
  agree(schema, message, true, "no violation");
  return undefined;
}

/** Throws where the schema of a request in the OpenAPI document takes another view of it than the rules. */
function agree(
  schema: DescMessage,
  message: MessageShape<DescMessage>,
  isValid: boolean,
  violation: string,
): void {
  const reference = requestReference(schema.typeName);
  if (!reference) return;
  const matches = schemaCheck(reference);
  if (matches(toJson(schema, message)) === isValid) return;
  const found = JSON.stringify(matches.errors)?.slice(0, 500) ?? "nothing";
  throw new Error(`the rules: ${violation}; gen/openapi.json: ${found}`);
}

/** Returns a value in a form short enough for a test's name. */
export function brief(value: JsonValue): string {
  if (typeof value === "string" && value.length > 24) return `a text of ${[...value].length} characters`;
  if (Array.isArray(value)) return `${value.length} × ${JSON.stringify(value[0])?.slice(0, 40)}`;
  if (typeof value === "object" && value !== null && Object.keys(value).length > 1) {
    return `${Object.keys(value).length} entries`;
  }
  return JSON.stringify(value);
}
