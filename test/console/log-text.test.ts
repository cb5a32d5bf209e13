import { describe, expect, test } from "@jest/globals";
import { createLogText, readableLine } from "../../console/src/pages/executions/log/log-text.ts";
import { csvOf } from "../../console/src/pages/executions/outputs.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("a log", () => {
  test("is read in pieces that cut lines and characters, and that come twice", () => {
    const log = createLogText();
    const all = bytes("one\nzwölf\nthree");
    log.add({ offset: 0, data: all.subarray(0, 7), attempt: 1 });
    expect(log.lines.map(({ text }) => text)).toEqual(["one", "zw"]);
    log.add({ offset: 4, data: all.subarray(4, 9), attempt: 1 });
    log.add({ offset: 0, data: all.subarray(0, 7), attempt: 1 });
    log.add({ offset: 9, data: all.subarray(9), attempt: 1 });
    expect(log.lines.map(({ text }) => text)).toEqual(["one", "zwölf", "three"]);
    expect(log.offset).toBe(all.length);
  });

  test("says where a part was not kept, and begins again with another attempt", () => {
    const log = createLogText();
    log.add({ offset: 0, data: bytes("begin"), attempt: 1 });
    log.add({ offset: 1_005, data: bytes("end\n"), attempt: 1 });
    expect(log.lines).toEqual([
      { text: "begin", isNote: false },
      { text: "1,000 bytes were not kept", isNote: true },
      { text: "end", isNote: false },
    ]);
    log.add({ offset: 0, data: bytes("again\n"), attempt: 2 });
    expect(log.lines.map(({ text }) => text)).toEqual(["again"]);
  });

  test.each([
    ["\u001b[1;31mred\u001b[0m", "red"],
    ["\u001b]8;;https://other.example.org\u0007link\u001b]8;;\u0007", "link"],
    ["\u001b]0;a title that does not end", ""],
    ["\u001bPq#0\u001b\\after", "after"],
    ["\u009b2Jcleared", "cleared"],
    ["10 %\r55 %\r100 %\r", "100 %"],
    ["a\tb\u0008\u0000", "a    b␈␀"],
    ["\u202egnp.exe\u200b", "‹202e›gnp.exe‹200b›"],
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
  ])("shows the line %j as %j", (line, expected) => {
    expect(readableLine(line)).toBe(expected);
  });

  test("shows no more of a line than 2,000 characters", () => {
    expect(readableLine("x".repeat(2_000))).toHaveLength(2_000);
    expect(readableLine("x".repeat(2_001))).toBe(`${"x".repeat(2_000)} …`);
  });
});

test("a file of outputs has no formulas, and quotes what needs it", () => {
  const value = (text: string) => ({
    $typeName: "service.v1.AgentExecution.Status.OutputValue" as const,
    value: { case: "stringValue" as const, value: text },
  });
  const number = {
    $typeName: "service.v1.AgentExecution.Status.OutputValue" as const,
    value: { case: "intValue" as const, value: -4n },
  };
  const rows = [
    { actionId: "1", name: "=one", values: { a: value('=SUM(1), "x"'), b: number } },
    { actionId: "2", name: "two", values: {} },
    { actionId: "3", name: "x;=three", values: { a: value("y\t=three") } },
  ];
  expect(csvOf(rows, ["a", "b"])).toBe(
    'action_id,action,a,b\r\n1,\'=one,"\'=SUM(1), ""x""",-4\r\n2,two,,\r\n3,"x;=three","y\t=three",\r\n',
  );
});
