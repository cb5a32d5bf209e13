import { create, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { AgentExecution_Status_OutputValueSchema } from "#gen/service/v1/agent_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  type WorkflowStep_Report_OutputSpec,
  WorkflowStep_Report_OutputSpecSchema,
} from "#gen/service/v1/workflow_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import { DomainError } from "../error.ts";
import { checkOutputSpecs, parseOutput } from "./report-output.ts";

type Init = Parameters<typeof create<typeof WorkflowStep_Report_OutputSpecSchema>>[1];
const output = (init: Init): WorkflowStep_Report_OutputSpec =>
  create(WorkflowStep_Report_OutputSpecSchema, {
    title: "Output",
    key: "result",
    extraction: { case: "command", value: "true" },
    ...init,
  });
const string = (pattern = "", acceptanceCriteria?: string) =>
  output({
    schema: { case: "string", value: { pattern } },
    ...(acceptanceCriteria ? { acceptanceCriteria } : {}),
  });
const integer = (bounds: { min?: number; max?: number } = {}) =>
  output({ schema: { case: "integer", value: bounds } });
const float = (bounds: { min?: number; max?: number } = {}) =>
  output({ schema: { case: "float", value: bounds } });
const boolean = () => output({ schema: { case: "boolean", value: {} } });

/** Returns the value as JSON, or the problem. */
function read(spec: WorkflowStep_Report_OutputSpec, text: string): unknown {
  const result = parseOutput(spec, text);
  return "value" in result ? toJson(AgentExecution_Status_OutputValueSchema, result.value) : result.problem;
}

describe("a text that was printed", () => {
  test.each([
    ["", ""],
    ["a\n", "a"],
    ["a\r\n", "a"],
    ["a\n\n", "a\n"],
    ["\n", ""],
    ["  a b\t", "  a b\t"],
    ["a\nb", "a\nb"],
  ])("%j is the string %j", (text, value) => {
    expect(read(string(), text)).toEqual({ stringValue: value });
  });

  test.each([
    ["x", 4_095],
    ["x", 4_096],
    ["😀", 4_095],
    ["😀", 4_096],
  ])("of %s may have %i characters", (character, count) => {
    expect(read(string(), `${character.repeat(count)}\n`)).toEqual({ stringValue: character.repeat(count) });
  });

  test.each(["x", "😀"])("of %s may not have 4,097 characters", (character) => {
    expect(read(string(), character.repeat(4_097))).toBe("output result has more than 4096 characters");
  });

  test("is no string with half of a surrogate pair", () => {
    expect(read(string(), "a\ud800")).toBe("output result is not valid Unicode text");
  });

  test("matches the pattern in some part", () => {
    expect(read(string("[0-9]"), "v1\n")).toEqual({ stringValue: "v1" });
    expect(read(string("^[0-9]$"), "1\n")).toEqual({ stringValue: "1" });
    expect(read(string("^[0-9]$"), "secret")).toBe("output result does not match the pattern ^[0-9]$");
  });
});

describe("a whole number that was printed", () => {
  test.each([
    ["7", "7"],
    [" 7 \n", "7"],
    ["+7", "7"],
    ["-7", "-7"],
    ["007", "7"],
    ["-0", "0"],
    ["2147483647", "2147483647"],
    ["2147483648", "2147483648"],
    ["9223372036854775806", "9223372036854775806"],
    ["9223372036854775807", "9223372036854775807"],
    ["-9223372036854775807", "-9223372036854775807"],
    ["-9223372036854775808", "-9223372036854775808"],
  ])("%j is %s", (text, value) => {
    expect(read(integer(), text)).toEqual({ intValue: value });
  });

  test.each(["9223372036854775808", "-9223372036854775809", "9".repeat(4_096)])("%s does not fit", (text) => {
    expect(read(integer(), text)).toBe("output result does not fit into 64 bits");
  });

  test.each([
    "",
    "\n",
    "7.0",
    "7e2",
    "0x7",
    "7 8",
    "7\n8",
    "1,000",
    "1_000",
    "--7",
    "+",
    "seven",
    "٧",
    "7n",
    "NaN",
  ])("%j is none", (text) => {
    expect(read(integer(), text)).toBe("output result is not a whole number in decimal digits");
  });

  test("stays within its bounds, both of which belong to it", () => {
    const spec = integer({ min: -5, max: 0 });
    expect(["-6", "-5", "-4", "-1", "0", "1"].map((text) => read(spec, text))).toEqual([
      "output result is less than -5",
      { intValue: "-5" },
      { intValue: "-4" },
      { intValue: "-1" },
      { intValue: "0" },
      "output result is more than 0",
    ]);
  });

  test("of 4,097 digits is not even read", () => {
    expect(read(integer(), "1".repeat(4_097))).toBe("output result has more than 4096 characters");
  });
});

describe("a number that was printed", () => {
  test.each([
    ["1.5", 1.5],
    [" -1.5\n", -1.5],
    ["+.5", 0.5],
    ["5.", 5],
    ["1e3", 1000],
    ["1.5E-1", 0.15],
    ["1.7976931348623157e308", Number.MAX_VALUE],
    ["1e-999", 0],
  ])("%j is %d", (text, value) => {
    expect(read(float(), text)).toEqual({ floatValue: value });
  });

  test.each(["", ".", "e5", "1e", "1.5.2", "0x1p3", "0x10", "1,5", "NaN", "Infinity", "-inf", "1 2", "1f"])(
    "%j is none",
    (text) => {
      expect(read(float(), text)).toBe("output result is not a number in decimal digits");
    },
  );

  test.each(["1e309", "-1e309", "9".repeat(400)])("%s is too large", (text) => {
    expect(read(float(), text)).toBe("output result is too large for a number of 64 bits");
  });

  test("stays within its bounds, both of which belong to it though they have 32 bits", () => {
    const spec = float({ min: Math.fround(0.1), max: Math.fround(0.7) });
    expect(
      ["0.09999", "0.1", "0.10001", "0.69999", "0.7", "0.70001"].map((text) => read(spec, text)),
    ).toEqual([
      "output result is less than 0.1",
      { floatValue: 0.1 },
      { floatValue: 0.10001 },
      { floatValue: 0.69999 },
      { floatValue: 0.7 },
      "output result is more than 0.7",
    ]);
  });

  test("beyond 32 bits is still compared", () => {
    expect(read(float({ max: 100 }), "1e300")).toBe("output result is more than 100");
    expect(read(float({ min: 100 }), "1e300")).toEqual({ floatValue: 1e300 });
    expect(read(float({ min: 100 }), "-1e300")).toBe("output result is less than 100");
  });

  test("comes back as it was, however a program prints it", () => {
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
        const result = parseOutput(float(), `${value}\n`);
        // A program prints -0 as 0.
        expect("value" in result && result.value.value).toEqual({ case: "floatValue", value: value + 0 });
      }),
      replay,
    );
  });
});

describe("a boolean that was printed", () => {
  test("is true or false in these letters", () => {
    expect(read(boolean(), " true \n")).toEqual({ boolValue: true });
    expect(read(boolean(), "false")).toEqual({ boolValue: false });
  });

  test.each(["", "True", "TRUE", "yes", "1", "0", "true false"])("%j is none", (text) => {
    expect(read(boolean(), text)).toBe("output result is neither true nor false");
  });
});

describe("the acceptance criteria of an output", () => {
  const percent = () => ({ ...integer({ min: 0 }), acceptanceCriteria: "this >= 80" });

  test("judge the value that was read", () => {
    expect(read(percent(), "80\n")).toEqual({ intValue: "80" });
    expect(read(percent(), "79\n")).toBe("output result is not accepted: the acceptance criterion is false");
    expect(read(percent(), "-1\n")).toBe("output result is less than 0");
  });

  test("that are empty accept every value", () => {
    expect(read({ ...integer(), acceptanceCriteria: "" }, "3")).toEqual({ intValue: "3" });
  });

  test.each([
    [{ ...float(), acceptanceCriteria: "this < 0.5" }, "0.25", { floatValue: 0.25 }],
    [{ ...boolean(), acceptanceCriteria: "this" }, "true", { boolValue: true }],
    [string("", "this.size() == 1"), "a\n", { stringValue: "a" }],
  ])("know the type of the schema %#", (spec, text, value) => {
    expect(read(spec, text)).toEqual(value);
  });
});

describe("outputs that are written", () => {
  const refusal = (...specs: WorkflowStep_Report_OutputSpec[]) => {
    try {
      checkOutputSpecs(specs, "report.steps[0].report.outputs");
    } catch (error) {
      expect(error).toBeInstanceOf(DomainError);
      expect((error as DomainError).reason).toBe(ErrorReason.VALUE_UNUSABLE);
      return `${(error as DomainError).metadata.field}: ${(error as DomainError).message}`;
    }
    return "accepted";
  };
  const OUTPUTS = "report.steps[0].report.outputs";

  test("have keys of their own", () => {
    expect(refusal(integer(), { ...integer(), key: "other" })).toBe("accepted");
    expect(refusal(integer(), { ...string(), key: "other" }, boolean())).toBe(
      `${OUTPUTS}[2].key: two outputs have the key result: give each its own`,
    );
  });

  test("have a least value that is not above the most", () => {
    expect(refusal(integer({ min: 4, max: 5 }))).toBe("accepted");
    expect(refusal(integer({ min: 5, max: 5 }))).toBe("accepted");
    expect(refusal(integer({ min: 6, max: 5 }))).toBe(`${OUTPUTS}[0].integer.min: min 6 is more than max 5`);
    expect(refusal(integer({ min: 6 }), { ...integer({ max: -6 }), key: "other" })).toBe("accepted");
    expect(refusal(float({ min: 0.5, max: 0.5 }))).toBe("accepted");
    expect(refusal(float({ min: Math.fround(0.6), max: 0.5 }))).toBe(
      `${OUTPUTS}[0].float.min: min 0.6 is more than max 0.5`,
    );
  });

  test.each([Number.NaN, Infinity, -Infinity])("have no bound of %d", (bound) => {
    expect(refusal(float({ min: bound }))).toContain(`${OUTPUTS}[0].float.min: min must be a number`);
    expect(refusal(float({ max: bound }))).toContain(`${OUTPUTS}[0].float.max: max must be a number`);
  });

  test("have patterns that compile", () => {
    expect(refusal(string("^[a-z]+$"))).toBe("accepted");
    expect(refusal(boolean(), { ...string("["), key: "other" })).toContain(
      `${OUTPUTS}[1].string.pattern: the pattern is no regular expression in RE2 syntax`,
    );
  });

  test("have acceptance criteria that compile over their type", () => {
    expect(refusal(string("", "this.size() > 1"))).toBe("accepted");
    expect(refusal({ ...integer(), acceptanceCriteria: "" })).toBe("accepted");
    expect(refusal({ ...integer(), acceptanceCriteria: "this.size() > 1" })).toContain(
      `${OUTPUTS}[0].acceptanceCriteria: the acceptance criterion needs int.size()`,
    );
  });
});
