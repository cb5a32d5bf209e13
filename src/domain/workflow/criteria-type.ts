import type { CelEnv, CelType, parse } from "@bufbuild/cel";
import { CelScalar, listType } from "@bufbuild/cel";
import { compilePattern, MAX_INSTRUCTIONS } from "../text/text-pattern.ts";

type Expression = ReturnType<typeof parse>["expr"];
type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];

/** A reason why an expression is rejected, as text for the person who wrote it. */
export class CriteriaProblem extends Error {}

/** Maximum nesting of an expression; the evaluator is recursive. */
export const MAX_DEPTH = 100;

/**
 * Infers the type of an expression over one value, which it calls `this`. The evaluator would find
 * a wrong type only when it runs, and only in the branch that it takes. The constructs that this
 * rejects beyond CEL (macros, fields, maps, patterns that are not literals) have no use over a
 * single value, and without them an evaluation visits each part of the expression at most once.
 * @throws CriteriaProblem
 */
export function typeOfCriteria(
  expression: Expression,
  valueType: CelType,
  functions: CelEnv["funcs"],
): CelType {
  let instructions = 0;
  return typeOf(expression, 0);

  function typeOf({ exprKind }: Expression, depth: number): CelType {
    if (depth > MAX_DEPTH) throw new CriteriaProblem(`nests deeper than ${MAX_DEPTH} levels`);
    switch (exprKind.case) {
      case "constExpr":
        return typeOfConstant(exprKind.value.constantKind.case);
      case "identExpr":
        if (exprKind.value.name === "this") return valueType;
        throw new CriteriaProblem(`does not know ${exprKind.value.name}: the value is called this`);
      case "listExpr":
        return listType(common(exprKind.value.elements.map((element) => typeOf(element, depth + 1))));
      case "callExpr":
        return typeOfCall(exprKind.value, depth);
      case "comprehensionExpr":
        throw new CriteriaProblem(
          "uses a macro (all, exists, exists_one, filter, map): the value is no list",
        );
      case "selectExpr":
        throw new CriteriaProblem(`reads the field ${exprKind.value.field}: the value has no fields`);
      default:
        throw new CriteriaProblem(
          "makes a map or message: only literals, lists, operators and functions are allowed",
        );
    }
  }

  function typeOfCall(call: Call, depth: number): CelType {
    const name = call.function;
    const target = call.target && typeOf(call.target, depth + 1);
    const args = call.args.map((argument) => typeOf(argument, depth + 1));
    const [first, second, third] = args;
    if (name === "matches") addPatternCost(call.args.at(-1));
    if ((name === "_&&_" || name === "_||_") && args.every((argument) => argument.name === "bool")) {
      return CelScalar.BOOL;
    }
    if (name === "_?_:_" && first?.name === "bool" && second && second.name === third?.name) return second;
    if ((name === "_==_" || name === "_!=_") && comparable(first, second)) return CelScalar.BOOL;
    if (name === "@in" && second?.kind === "list" && comparable(first, second.element)) return CelScalar.BOOL;
    for (const overload of SPECIAL_OPERATORS.has(name) ? [] : (functions.find(name) ?? [])) {
      const fits =
        accepts(overload.target, target) &&
        overload.arguments.length === args.length &&
        overload.arguments.every((parameter, index) => accepts(parameter, args[index]));
      // dyn() and type() would hide the type of the result.
      if (fits && overload.result.name !== "dyn" && overload.result.name !== "type") return overload.result;
    }
    const shown = /\W/.test(name) ? name.replace(/[_@]/g, "") : name;
    const signature = `${target ? `${target.name}.` : ""}${shown}(${args.map((argument) => argument.name).join(", ")})`;
    throw new CriteriaProblem(
      `needs ${signature}, which CEL does not have: convert with int(), double() or string()`,
    );
  }

  /**
   * Adds the cost of a pattern. Only a literal can be checked, and its cost known, before the
   * expression runs.
   */
  function addPatternCost(pattern: Expression | undefined): void {
    const constant = pattern?.exprKind.case === "constExpr" ? pattern.exprKind.value.constantKind : undefined;
    if (constant?.case !== "stringValue")
      throw new CriteriaProblem("matches a pattern that is no literal text");
    const compiled = compilePattern(constant.value);
    if ("problem" in compiled) throw new CriteriaProblem(`cannot match: ${compiled.problem}`);
    instructions += compiled.instructions;
    if (instructions > MAX_INSTRUCTIONS) {
      throw new CriteriaProblem(`has patterns of more than ${MAX_INSTRUCTIONS} instructions together`);
    }
  }
}

/** Operators whose overloads are less precise than CEL's rules. */
const SPECIAL_OPERATORS = new Set(["_&&_", "_||_", "_?_:_", "_==_", "_!=_", "@in"]);
const NUMBERS = new Set(["int", "uint", "double"]);

function typeOfConstant(kind: string | undefined): CelType {
  switch (kind) {
    case "boolValue":
      return CelScalar.BOOL;
    case "int64Value":
      return CelScalar.INT;
    case "uint64Value":
      return CelScalar.UINT;
    case "doubleValue":
      return CelScalar.DOUBLE;
    case "stringValue":
      return CelScalar.STRING;
    case "bytesValue":
      return CelScalar.BYTES;
    default:
      throw new CriteriaProblem("uses null: a value is always there");
  }
}

/** Returns the type of a list's elements; an empty list fits any. */
function common(types: CelType[]): CelType {
  const [first = CelScalar.DYN] = types;
  if (types.every((type) => type.name === first.name)) return first;
  throw new CriteriaProblem("has a list whose elements are not all of one type");
}

function comparable(one: CelType | undefined, other: CelType | undefined): boolean {
  if (!one || !other) return false;
  if (one.name === "dyn" || other.name === "dyn") return true;
  return one.name === other.name || (NUMBERS.has(one.name) && NUMBERS.has(other.name));
}

function accepts(parameter: CelType | undefined, given: CelType | undefined): boolean {
  return parameter?.name === given?.name || (given !== undefined && parameter?.name === "dyn");
}
