import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { cpuMs } from "../../../../test/harness/cpu-time.ts";
import { replay } from "../../../../test/harness/seed.ts";
import { hasParameterExpression, parameterExpressions, replaceExpressions } from "./parameter-expression.ts";

const keys = (text: string) => parameterExpressions(text, "place").map(({ key }) => key);
const longest = "k".repeat(128);

describe("parameter expressions", () => {
  test.each([
    ["{{ .Parameters.a }}", ["a"]],
    ["{{.Parameters.a}}", ["a"]],
    ["{{\t.Parameters.a \t }}", ["a"]],
    ["{{ .Parameters._A9 }}{{ .Parameters.b }}", ["_A9", "b"]],
    ["{{{ .Parameters.a }}}", ["a"]],
    ["{{ .Parameters.a }}}}", ["a"]],
    ["{{ .ID }} {{ .Parameters.a }} {{", ["a"]],
    ["é😀\n{{ .Parameters.constructor }}", ["constructor"]],
    [`{{ .Parameters.${longest} }}`, [longest]],
  ])("in %j are %j", (text, found) => {
    expect(keys(text)).toEqual(found);
    expect(hasParameterExpression(text)).toBe(true);
  });

  test.each([
    "docker ps --format '{{.ID}}'",
    "{{",
    "{{ }}",
    "{{ Parameters.a }}",
    "{{ .parameters.a }}",
    "{{ .ParametersFile }}",
    "{{ .Parameters2.a }}",
    "{{ .Parameters_.a }}",
    "{{- .Parameters.a -}}",
    "{{ $.Parameters.a }}",
    "{ { .Parameters.a }}",
    ".Parameters.a }}",
    "{{ build.ref }}",
  ])("are not in %j, which is left alone", (text) => {
    expect(keys(text)).toEqual([]);
    expect(hasParameterExpression(text)).toBe(false);
  });

  test.each([
    ["{{ .Parameters }}", "it names no key"],
    ["{{ .Parameters", "it names no key"],
    ["{{ .Parameters[0] }}", "it names no key"],
    ["{{ .Parametersé }}", "it names no key"],
    ["{{ .Parameters. }}", "the key must match"],
    ["{{ .Parameters.1x }}", "the key must match"],
    ["{{ .Parameters. a }}", "the key must match"],
    ["{{ .Parameters.é }}", "the key must match"],
    ["{{ .Parameters.a", "only spaces and tabs"],
    ["{{ .Parameters.a }", "only spaces and tabs"],
    ["{{ .Parameters.a } }", "only spaces and tabs"],
    ["{{ .Parameters.a | upper }}", "only spaces and tabs"],
    ["{{ .Parameters.a.b }}", "only spaces and tabs"],
    ["{{ .Parameters.a-b }}", "only spaces and tabs"],
    ["{{\n.Parameters.a }}", "only spaces and tabs"],
    ["{{ .Parameters.a\n}}", "only spaces and tabs"],
    ["{{\u00a0.Parameters.a }}", "only spaces and tabs"],
    ["{{ .Parameters.a {{ .Parameters.b }}", "only spaces and tabs"],
    [`{{ .Parameters.${longest}k }}`, "the key has more than 128 characters"],
  ])("like %j are malformed", (text, problem) => {
    expect(() => parameterExpressions(text, "action.steps[0].agent.prompt")).toThrow(problem);
    expect(hasParameterExpression(text)).toBe(true);
  });

  test("that are malformed are reported with the field and the character where they begin", () => {
    expect(() =>
      parameterExpressions("😀 {{ .Parameters.a }}{{ .Parameters }}", "report.steps[1].agent.prompt"),
    ).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/^report\.steps\[1\]\.agent\.prompt has .* at character 22: /),
        metadata: { field: "report.steps[1].agent.prompt" },
      }),
    );
  });
});

test("what replaces an expression is not read again", () => {
  const text = "<{{ .Parameters.a }}|{{ .Parameters.b }}>";
  const expressions = parameterExpressions(text, "place");
  expect(replaceExpressions(text, expressions, ({ key }) => `{{ .Parameters.${key}${key} }}$&`)).toBe(
    "<{{ .Parameters.aa }}$&|{{ .Parameters.bb }}$&>",
  );
});

test("everything between expressions comes back as it was", () => {
  const piece = fc.constantFrom(
    "{{",
    "}}",
    "{{ .Parameters.a }}",
    "{{.Parameters.b}}",
    " ",
    ".Parameters.",
    "é😀",
    "\n",
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const text = pieces.join("");
      const wellFormed = /\{\{[ \t]*\.Parameters\.[a-z]+[ \t]*\}\}/g;
      fc.pre(!hasParameterExpression(text.replaceAll(wellFormed, "")));
      const replaced = replaceExpressions(text, parameterExpressions(text, "place"), ({ key }) => `<${key}>`);
      expect(replaced).toBe(
        text.replaceAll(wellFormed, (whole) => `<${whole.includes("a }}") ? "a" : "b"}>`),
      );
    }),
    replay,
  );
});

test("a long text without sense is read in time that grows with its length", () => {
  const tookMs = cpuMs(() => {
    for (const piece of ["{", "{{ ", "{{ .Parameters", "{{ .Parameters.a", " .Parameters", "}"]) {
      try {
        parameterExpressions(piece.repeat(20_000 / piece.length), "place");
      } catch {}
    }
  });
  expect(tookMs).toBeLessThan(1_000);
});
