import { create } from "@bufbuild/protobuf";
import {
  type AgentExecution_Status_OutputValue,
  AgentExecution_Status_OutputValueSchema,
} from "#gen/service/v1/agent_pb.js";
import type {
  WorkflowStep_Report_FloatSchema,
  WorkflowStep_Report_IntegerSchema,
  WorkflowStep_Report_OutputSpec,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../error.ts";
import { compilePattern } from "../text/text-pattern.ts";
import { type CriteriaValue, checkCriteria, meetsCriteria } from "./acceptance-criteria.ts";

/** Maximum length of the text of an output (contract, OutputValue). */
const MAX_OUTPUT_CHARACTERS = 4_096;

/** Range of an int64. */
const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 63n - 1n;

const INTEGER = /^[+-]?\d+$/;
const FLOAT = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/**
 * Checks outputs for mistakes: two with one key, a minimum above the maximum, a pattern or an
 * acceptance criterion that does not compile.
 * @param path JSON path of the outputs
 * @throws DomainError VALUE_UNUSABLE for the first one found
 */
export function checkOutputSpecs(specs: readonly WorkflowStep_Report_OutputSpec[], path: string): void {
  const keys = new Set<string>();
  for (const [index, { key, schema, acceptanceCriteria }] of specs.entries()) {
    const field = `${path}[${index}]`;
    if (keys.has(key)) {
      throw valueUnusable(`${field}.key`, `two outputs have the key ${key}: give each its own`);
    }
    keys.add(key);
    if (schema.case === undefined) continue;
    if (schema.case === "string") checkPattern(schema.value.pattern, `${field}.string.pattern`);
    if (schema.case === "integer") checkBounds(schema.value, `${field}.integer`);
    if (schema.case === "float") checkBounds(schema.value, `${field}.float`);
    if (acceptanceCriteria) checkCriteria(acceptanceCriteria, schema.case, `${field}.acceptanceCriteria`);
  }
}

/**
 * Parses the output of a command as the value of an output, or returns the problem. The problem
 * names the output but never repeats the text, which may be anything.
 *
 * One newline at the end is removed; at most 4,096 characters may remain.
 *
 * - string: the text, some part of which matches the pattern.
 * - integer: decimal digits with an optional sign, within 64 bits and the bounds.
 * - float: a decimal number, with or without fraction and exponent, finite and within the bounds.
 * - boolean: `true` or `false`.
 *
 * All but a string may have white space around them. A value must meet the acceptance criteria,
 * too.
 * @param spec one that {@link checkOutputSpecs} accepts
 */
export function parseOutput(
  spec: WorkflowStep_Report_OutputSpec,
  text: string,
): { value: AgentExecution_Status_OutputValue } | { problem: string } {
  const read = readValue(spec.schema, text.replace(/\r?\n$/, ""));
  if (typeof read === "object") return { problem: `output ${spec.key} ${read.problem}` };
  if (spec.acceptanceCriteria) {
    const verdict = meetsCriteria(spec.acceptanceCriteria, read);
    if (!verdict.met) return { problem: `output ${spec.key} is not accepted: ${verdict.message}` };
  }
  return { value: create(AgentExecution_Status_OutputValueSchema, { value: asOutputValue(read) }) };
}

type Schema = WorkflowStep_Report_OutputSpec["schema"];
type Read = CriteriaValue | { problem: string };

function readValue(schema: Schema, text: string): Read {
  // A character has one or two UTF-16 units, so a far longer text need not be counted.
  if (text.length > 2 * MAX_OUTPUT_CHARACTERS || [...text].length > MAX_OUTPUT_CHARACTERS) {
    return { problem: `has more than ${MAX_OUTPUT_CHARACTERS} characters` };
  }
  switch (schema.case) {
    case "string":
      return readString(schema.value.pattern, text);
    case "integer":
      return readInteger(schema.value, text.trim());
    case "float":
      return readFloat(schema.value, text.trim());
    case "boolean":
      return readBoolean(text.trim());
    default:
      return { problem: "has no schema" };
  }
}

function readString(pattern: string, text: string): Read {
  // Protobuf cannot carry half of a surrogate pair.
  if (!text.isWellFormed()) return { problem: "is not valid Unicode text" };
  if (pattern === "") return text;
  const compiled = compilePattern(pattern);
  if ("problem" in compiled) return compiled;
  return compiled.matches(text) ? text : { problem: `does not match the pattern ${pattern}` };
}

function readInteger({ min, max }: WorkflowStep_Report_IntegerSchema, text: string): Read {
  if (!INTEGER.test(text)) return { problem: "is not a whole number in decimal digits" };
  const value = BigInt(text.replace(/^\+/, ""));
  if (value < MIN_INTEGER || value > MAX_INTEGER) return { problem: "does not fit into 64 bits" };
  if (min !== undefined && value < BigInt(min)) return { problem: `is less than ${min}` };
  if (max !== undefined && value > BigInt(max)) return { problem: `is more than ${max}` };
  return value;
}

function readFloat({ min, max }: WorkflowStep_Report_FloatSchema, text: string): Read {
  if (!FLOAT.test(text)) return { problem: "is not a number in decimal digits" };
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: "is too large for a number of 64 bits" };
  // The bounds have 32 bits, where 0.1 is slightly larger than in 64: compared in 32 bits, 0.1 is
  // not below 0.1.
  const rounded = Math.fround(value);
  if (min !== undefined && rounded < Math.fround(min)) return { problem: `is less than ${formatBound(min)}` };
  if (max !== undefined && rounded > Math.fround(max)) return { problem: `is more than ${formatBound(max)}` };
  return value;
}

function readBoolean(text: string): Read {
  if (text === "true") return true;
  if (text === "false") return false;
  return { problem: "is neither true nor false" };
}

function asOutputValue(value: CriteriaValue): AgentExecution_Status_OutputValue["value"] {
  if (typeof value === "bigint") return { case: "intValue", value };
  if (typeof value === "number") return { case: "floatValue", value };
  return typeof value === "boolean" ? { case: "boolValue", value } : { case: "stringValue", value };
}

function checkPattern(pattern: string, field: string): void {
  const compiled = compilePattern(pattern);
  if ("problem" in compiled) throw valueUnusable(field, compiled.problem);
}

function checkBounds(bounds: { min?: number | undefined; max?: number | undefined }, field: string): void {
  for (const [name, value] of [
    ["min", bounds.min],
    ["max", bounds.max],
  ] as const) {
    if (value !== undefined && !Number.isFinite(value)) {
      throw valueUnusable(`${field}.${name}`, `${name} must be a number: leave it unset for no bound`);
    }
  }
  const { min = -Infinity, max = Infinity } = bounds;
  if (min > max)
    throw valueUnusable(`${field}.min`, `min ${formatBound(min)} is more than max ${formatBound(max)}`);
}

/** Formats a bound as it was written: 32 bits keep seven digits of any decimal number. */
function formatBound(bound: number): string {
  return Number.isInteger(bound) ? String(bound) : String(Number(bound.toPrecision(7)));
}
