import { describe, expect, test } from "@jest/globals";
import { compilePattern, MAX_INSTRUCTIONS } from "./text-pattern.ts";

const compiled = (pattern: string) => {
  const result = compilePattern(pattern);
  if ("problem" in result) throw new Error(result.problem);
  return result;
};
const problem = (pattern: string) => {
  const result = compilePattern(pattern);
  return "problem" in result ? result.problem : "compiles";
};

describe("a pattern", () => {
  test.each([
    ["b", "abc", true],
    ["^b", "abc", false],
    ["^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", true],
    ["^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2", false],
    ["(?i)^ok$", "Ok", true],
    ["^ok$", "ok\nmore", false],
    ["(?m)^ok$", "not\nok", true],
    ["^.$", "😀", true],
    ["^\\pL+$", "Größe", true],
    ["", "", true],
  ])("%s tells of %j: %s", (pattern, text, matches) => {
    expect(compiled(pattern).matches(text)).toBe(matches);
  });

  test.each(["[", "(", "a**", "a{2}{3}", "(?=a)", "(?<!a)b", "(a)\\1", "\\", "a{1001}", "(?P<n>a", "[z-a]"])(
    "%s is no RE2",
    (pattern) => {
      expect(problem(pattern)).toMatch(/^the pattern is no regular expression in RE2 syntax: [a-z]/);
    },
  );

  test("may be a plain text of 1,024 characters, the longest of the contract", () => {
    expect(compiled("x".repeat(1_024)).matches(`-${"x".repeat(1_024)}`)).toBe(true);
  });

  test("compiles to at most 1,100 instructions", () => {
    // Each character is one instruction; two more start and end the program.
    const ofSize = (size: number) => `a{549}b{549}${"c".repeat(size - 1_100)}`;
    expect(compiled("a{549}b{548}").instructions).toBe(MAX_INSTRUCTIONS - 1);
    expect(compiled(ofSize(1_100)).instructions).toBe(MAX_INSTRUCTIONS);
    expect(problem(ofSize(1_101))).toContain("compiles to 1101 instructions, and 1100 are allowed");
  });

  test.each([
    ["groups in groups", `(((${"x".repeat(990)}){10}){10}){10}`],
    ["a group of a thousand", `(${"x".repeat(1_000)}){1000}`],
    ["many characters of a thousand", "a{1000}".repeat(146)],
    ["open repeats", "(a?){1000,}".repeat(90)],
    ["repeats up to a number", `(${"x".repeat(1_000)}){0,1000}`],
  ])("that would grow without end is not even compiled: %s", (_, pattern) => {
    expect(problem(pattern)).toContain("repeats too much");
  });

  test.each(["a{1000}", "(ab){500}", "((a{10}){10}){10}", "(a{2}b{3}){40}(c{4}){5}"])(
    "%s is compiled first",
    (pattern) => {
      expect(problem(pattern)).not.toContain("repeats too much");
    },
  );

  test("that makes other engines backtrack for ever answers at once", () => {
    const text = `${"a".repeat(4_096)}!`;
    expect(compiled("^(a+)+$").matches(text)).toBe(false);
    expect(compiled("^(a|a|aa)*$").matches(text)).toBe(false);
    expect(compiled("^(.*a){20}$").matches(text)).toBe(false);
  });
});
