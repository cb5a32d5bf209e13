import {
  type CelInput,
  CelScalar,
  type CelType,
  celEnv,
  celFunc,
  celMethod,
  isCelError,
  parse,
  plan,
} from "@bufbuild/cel";
import { valueUnusable } from "../error.ts";
import { compilePattern } from "../text/text-pattern.ts";
import { CriteriaProblem, typeOfCriteria } from "./criteria-type.ts";

/** Maximum length of an expression (contract). */
const MAX_CRITERIA_CHARACTERS = 4_096;

/**
 * Maximum length of the text or bytes that `+` may produce while an expression is evaluated: the
 * largest value, 4,096 characters of two UTF-16 units. Without it a short expression could produce
 * megabytes and search them.
 */
const MAX_SUM_LENGTH = 8_192;

/**
 * White space of a length that makes the CEL parser slow: its time grows with the square of the
 * length.
 */
const LONG_SPACE = /\s{100}/;

/** A value by its CEL type: a bigint is an int, a number a double. */
export type CriteriaValue = string | bigint | number | boolean;

/** The type of the values, named as in the schema of an output. */
export type CriteriaType = "string" | "integer" | "float" | "boolean";

const CEL_TYPES: Record<CriteriaType, CelType> = {
  string: CelScalar.STRING,
  integer: CelScalar.INT,
  float: CelScalar.DOUBLE,
  boolean: CelScalar.BOOL,
};

const { BOOL, BYTES, STRING } = CelScalar;
const ENVIRONMENT = celEnv({
  funcs: [
    celFunc("_+_", [STRING, STRING], STRING, (one, other) => {
      requireMaxCharacters(one.length + other.length);
      return one + other;
    }),
    celFunc("_+_", [BYTES, BYTES], BYTES, (one, other) => {
      requireMaxCharacters(one.length + other.length);
      const sum = new Uint8Array(one.length + other.length);
      sum.set(one);
      sum.set(other, one.length);
      return sum;
    }),
    celMethod("matches", STRING, [STRING], BOOL, function (pattern) {
      const compiled = compilePattern(pattern);
      if ("problem" in compiled) throw new Error(compiled.problem);
      return compiled.matches(this);
    }),
  ],
});

/**
 * Requires that an acceptance criterion can be evaluated: a CEL expression of at most 4,096
 * characters over the value, which it calls `this`, with a boolean result.
 * @param field JSON path of the expression
 * @throws DomainError VALUE_UNUSABLE
 */
export function checkCriteria(expression: string, type: CriteriaType, field: string): void {
  const compiled = compile(expression, CEL_TYPES[type]);
  if ("problem" in compiled) throw valueUnusable(field, compiled.problem);
}

/**
 * Returns whether a value meets a criterion, or a message. An expression that fails (a division by
 * zero, a text that is not a number) is not met, and neither is one that {@link checkCriteria}
 * rejects. An evaluation visits each part of the expression at most once, over texts of at most
 * 8,192 UTF-16 units and patterns of at most MAX_INSTRUCTIONS together.
 */
export function meetsCriteria(
  expression: string,
  value: CriteriaValue,
): { met: true } | { met: false; message: string } {
  const compiled = compile(expression, typeOfValue(value));
  if ("problem" in compiled) return { met: false, message: compiled.problem };
  const result = compiled.evaluate(value);
  if (result === true) return { met: true };
  const cause = isCelError(result) ? `could not be evaluated: ${result.message.slice(0, 200)}` : "is false";
  return { met: false, message: `the acceptance criterion ${cause}` };
}

type Compiled = { evaluate: (value: CelInput) => unknown } | { problem: string };

function compile(expression: string, type: CelType): Compiled {
  if ([...expression].length > MAX_CRITERIA_CHARACTERS) {
    return refused(`has more than ${MAX_CRITERIA_CHARACTERS} characters`);
  }
  const text = expression.trim();
  if (LONG_SPACE.test(text)) return refused("has 100 characters of white space or more in a row");
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(text);
  } catch (error) {
    const { name, message } = error as Error;
    return refused(name === "RangeError" ? "nests too deeply" : `does not parse: ${message.slice(0, 200)}`);
  }
  try {
    const result = typeOfCriteria(parsed.expr, type, ENVIRONMENT.funcs);
    if (result.name !== "bool") return refused(`gives ${result.name}, not bool`);
  } catch (error) {
    if (error instanceof CriteriaProblem) return refused(error.message);
    throw error;
  }
  const evaluate = plan(ENVIRONMENT, parsed);
  return { evaluate: (value) => evaluate({ this: value }) };
}

function refused(why: string): { problem: string } {
  return { problem: `the acceptance criterion ${why}` };
}

function typeOfValue(value: CriteriaValue): CelType {
  if (typeof value === "bigint") return CelScalar.INT;
  if (typeof value === "number") return CelScalar.DOUBLE;
  return typeof value === "boolean" ? CelScalar.BOOL : CelScalar.STRING;
}

function requireMaxCharacters(length: number): void {
  if (length > MAX_SUM_LENGTH) throw new Error(`a text of more than ${MAX_SUM_LENGTH} characters`);
}
