import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../error.ts";
import {
  type CriteriaType,
  type CriteriaValue,
  checkCriteria,
  meetsCriteria,
} from "./acceptance-criteria.ts";

const FIELD = "report.steps[0].report.outputs[0].acceptanceCriteria";

function refusal(expression: string, type: CriteriaType): string {
  try {
    checkCriteria(expression, type, FIELD);
  } catch (error) {
    expect(error).toBeInstanceOf(DomainError);
    const { reason, metadata, message } = error as DomainError;
    expect([reason, metadata]).toEqual([ErrorReason.VALUE_UNUSABLE, { field: FIELD }]);
    return message;
  }
  return "accepted";
}

const typeOf = (value: CriteriaValue): CriteriaType => {
  if (typeof value === "bigint") return "integer";
  if (typeof value === "number") return "float";
  return typeof value === "boolean" ? "boolean" : "string";
};

/** Returns true, false or the message; the expression must have passed its check. */
function verdict(expression: string, value: CriteriaValue): boolean | string {
  expect(refusal(expression, typeOf(value))).toBe("accepted");
  const result = meetsCriteria(expression, value);
  if (result.met) return true;
  return result.message === "the acceptance criterion is false" ? false : result.message;
}

describe("an acceptance criterion judges a value that it calls this", () => {
  test.each<[string, CriteriaValue, boolean]>([
    ["this >= 80", 80n, true],
    ["this >= 80", 79n, false],
    ["this > 79.5", 80n, true],
    ["this % 2 == 0 && this != 4", 6n, true],
    ["-this == 3", -3n, true],
    ["this in [1, 2, 3]", 3n, true],
    ["this in [1, 2, 3]", 4n, false],
    ["!(this in [])", 4n, true],
    ["this in [1] + [4]", 4n, true],
    ["this == 9223372036854775807", 9223372036854775807n, true],
    ["this == 2.0", 2n, true],
    ["uint(this) == 2u", 2n, true],
    ["this >= 0.5", 0.5, true],
    ["this >= 1", 0.5, false],
    ["this * 2.0 == 1.0", 0.5, true],
    ["this", true, true],
    ["this", false, false],
    ["!this", false, true],
    ["this == true", true, true],
    ["size(this) > 0", "a", true],
    ["this.size() == 1", "😀", true],
    ["this == 'a' || this == \"b\"", "b", true],
    ["this.startsWith('v') && !this.endsWith('-rc')", "v1", true],
    ["this.matches('^v[0-9]+$')", "v12", true],
    ["this.matches('^v[0-9]+$')", "v12x", false],
    ["this.contains('\\n')", "a\nb", true],
    ["int(this) > 5", "6", true],
    ["double(this) < 1.5", "1.25", true],
    ["size(bytes(this)) == 2", "ß", true],
    ["bytes(this) + b'!' == b'a!'", "a", true],
    ["this + this == 'abab'", "ab", true],
    ["timestamp(this) > timestamp('2026-01-01T00:00:00Z')", "2026-06-01T00:00:00Z", true],
    ["duration(this) <= duration('90s')", "1m30s", true],
    ["timestamp(this).getFullYear() == 2026", "2026-06-01T00:00:00Z", true],
    ["this == '' ? true : this.size() > 2", "", true],
    ["  this == 'a'\n", "a", true],
  ])("%s over %j: %s", (expression, value, met) => {
    expect(verdict(expression, value)).toBe(met);
  });

  test.each<[string, CriteriaValue, string]>([
    ["10 / this > 1", 0n, "divide by zero"],
    ["int(this) > 5", "many", "could not be evaluated"],
    ["timestamp(this) > timestamp('2026-01-01T00:00:00Z')", "yesterday", "could not be evaluated"],
    ["this + 1 > 0", 9223372036854775807n, "overflow"],
  ])("%s over %j fails, and so is not met", (expression, value, says) => {
    expect(verdict(expression, value)).toMatch(/^the acceptance criterion could not be evaluated: /);
    expect(verdict(expression, value)).toContain(says);
  });

  test("says little of a long cause", () => {
    expect(String(verdict("int(this) > 5", "x".repeat(4_096))).length).toBeLessThan(300);
  });
});

describe("an acceptance criterion is refused when it is written", () => {
  test.each<[string, CriteriaType, string]>([
    ["", "string", "does not parse"],
    ["this >", "integer", "does not parse"],
    ["this = 3", "integer", "does not parse"],
    ["this == 'a", "string", "does not parse"],
    ["1", "integer", "gives int"],
    ["this", "integer", "gives int"],
    ["this ? 1 : 2", "boolean", "gives int"],
    ["this + 'a'", "string", "gives string"],
    ["[true]", "boolean", "gives list"],
    ["value > 3", "integer", "does not know value: the value is called this"],
    ["output > 3 || true", "integer", "does not know output"],
    ["constructor == 3", "integer", "does not know constructor"],
    ["true || unknown(this)", "integer", "needs unknown(int)"],
    ["this > 5", "string", "needs >(string, int)"],
    ["this == '5'", "integer", "needs ==(int, string)"],
    ["this in ['5']", "integer", "needs in(int, list)"],
    ["this in 'abc'", "string", "needs in(string, string)"],
    ["this == [1]", "integer", "needs ==(int, list)"],
    ["this * 2 > 1.0", "float", "needs *(double, int)"],
    ["this % 2.0 == 0.0", "float", "needs %(double, double)"],
    ["!this", "integer", "needs !(int)"],
    ["-this == 'a'", "string", "needs -(string)"],
    ["this && 1", "boolean", "needs &&(bool, int)"],
    ["this || this", "string", "needs ||(string, string)"],
    ["this ? true : 1", "boolean", "needs ?:(bool, bool, int)"],
    ["this ? true : false", "string", "needs ?:(string, bool, bool)"],
    ["size(this) > 1", "integer", "needs size(int)"],
    ["this.size() > 1", "integer", "needs int.size()"],
    ["this.size(1) > 1", "string", "needs string.size(int)"],
    ["matches(this, 'a')", "string", "needs matches(string, string)"],
    ["this.lowerAscii() == 'a'", "string", "needs string.lowerAscii()"],
    ["this[0] == 'a'", "string", "needs [](string, int)"],
    ["dyn(this) == 'a'", "integer", "needs dyn(int)"],
    ["type(this) == type(1)", "integer", "needs type(int)"],
    ["int == int", "integer", "does not know int"],
    ["this.name == 'a'", "string", "the value has no fields"],
    ["has(this.name)", "string", "the value has no fields"],
    ["this == null", "string", "a value is always there"],
    ["this in [1, 'a']", "integer", "elements are not all of one type"],
    ["this in {'a': 1}", "string", "makes a map or message"],
    ["google.protobuf.BoolValue{value: true}", "string", "makes a map or message"],
    ["[1, 2].all(x, x < this)", "integer", "uses a macro"],
    ["[1, 2].exists(x, x == this)", "integer", "uses a macro"],
    ["[1, 2].map(x, x + 1) == [2]", "integer", "uses a macro"],
    ["this.matches('[')", "string", "no regular expression in RE2 syntax"],
    ["this.matches(this)", "string", "no literal text"],
    ["'a'.matches('a' + this)", "string", "no literal text"],
  ])("%s over a %s", (expression, type, says) => {
    expect(refusal(expression, type)).toContain(`the acceptance criterion`);
    expect(refusal(expression, type)).toContain(says);
  });

  test("an expression that would be refused is not met either", () => {
    expect(meetsCriteria("this > 5", "6")).toEqual({ met: false, message: refusal("this > 5", "string") });
  });
});

describe("the cost of an acceptance criterion is bounded", () => {
  const padded = (length: number) => `this == '${"é".repeat(length - 10)}'`;

  test("by its length: 4,096 characters", () => {
    expect(padded(4_096)).toHaveLength(4_096);
    expect(refusal(padded(4_095), "string")).toBe("accepted");
    expect(refusal(padded(4_096), "string")).toBe("accepted");
    expect(refusal(padded(4_097), "string")).toContain("more than 4096 characters");
  });

  test("by its depth: 100 levels", () => {
    // The comparison is level 0 and the first sum level 1, so that `this` is at the number of sums
    // plus one.
    expect(refusal(`this${" + 1".repeat(98)} > 0`, "integer")).toBe("accepted");
    expect(refusal(`this${" + 1".repeat(99)} > 0`, "integer")).toBe("accepted");
    expect(refusal(`this${" + 1".repeat(100)} > 0`, "integer")).toContain("nests deeper than 100 levels");
  });

  test.each(["(", "[", "!("])("by the stack: %s thousands of times", (open) => {
    expect(refusal(open.repeat(4_000 / open.length), "string")).toContain("nests too deeply");
  });

  test("many alternatives lie flat", () => {
    const many = Array.from({ length: 300 }, (_, index) => `this==${index}`).join("||");
    expect(verdict(many, 299n)).toBe(true);
    expect(verdict(many, 300n)).toBe(false);
  });

  test("by white space: fewer than 100 characters of it in a row", () => {
    const spaced = (length: number) => `this ==${" ".repeat(length)}1`;
    expect(refusal(spaced(98), "integer")).toBe("accepted");
    expect(refusal(spaced(99), "integer")).toBe("accepted");
    expect(refusal(spaced(100), "integer")).toContain("100 characters of white space");
    expect(refusal(`${" ".repeat(3_000)}this == 1${"\n".repeat(1_000)}`, "integer")).toBe("accepted");
  });

  test("by its patterns: 1,100 instructions together", () => {
    const two = (size: number) => `this.matches('a{598}') || this.matches('b{${size - 602}}')`;
    expect(refusal(two(1_099), "string")).toBe("accepted");
    expect(refusal(two(1_100), "string")).toBe("accepted");
    expect(refusal(two(1_101), "string")).toContain("more than 1100 instructions together");
  });

  test("by what a sum makes: 8,192 UTF-16 units, or bytes", () => {
    const text = "x".repeat(4_095);
    expect(verdict("this + this + '1' != ''", text)).toBe(true);
    expect(verdict("this + this + '12' != ''", text)).toBe(true);
    expect(verdict("this + this + '123' != ''", text)).toContain("more than 8192");
    expect(verdict("bytes(this) + bytes(this) + b'12' != b''", text)).toBe(true);
    expect(verdict("bytes(this) + bytes(this) + b'123' != b''", text)).toContain("more than 8192");
  });
});
