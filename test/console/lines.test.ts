import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { turnsOf } from "../../console/src/pages/agents/run/turns.ts";
import { editorsIn, editorsText } from "../../console/src/pages/projects/editors-text.ts";
import { chunksOf, importLines } from "../../console/src/pages/projects/import-lines.ts";

describe("the lines of an import", () => {
  test("name each repository once, with the number of its line", () => {
    expect(importLines("# ours\n\n a.git \nb.git\r\na.git\n")).toEqual([
      { line: 3, remoteUri: "a.git" },
      { line: 4, remoteUri: "b.git" },
    ]);
  });

  test.each([
    [0, []],
    [2, [2]],
    [3, [2, 1]],
  ])("go in pieces: %i lines", (length, lengths) => {
    const list = Array.from({ length }, (_, at) => at);
    expect(chunksOf(list, 2).map((piece) => piece.length)).toEqual(lengths);
    expect(chunksOf(list, 2).flat()).toEqual(list);
  });
});

test("editors are read as they are written", () => {
  const editors = { code: { versions: ["stable", "insiders"] }, vim: { versions: [] } };
  expect(editorsText(editors)).toBe("code: stable, insiders\nvim");
  expect(editorsIn(`\n${editorsText(editors)} : \n`)).toEqual(editors);
});

test("a turn ends before the first block of the next one; the last one may go on", () => {
  const block = (sequence: number, inputId: string, content?: string) =>
    create(AgentOutputBlockSchema, {
      sequence: BigInt(sequence),
      inputId,
      block: content === undefined ? { case: "usage", value: {} } : { case: "text", value: { content } },
    });
  const blocks = [
    block(1, "", "hello"),
    block(2, "a", "yes"),
    block(3, "a"),
    block(4, "b"),
    block(5, "c", "no"),
  ];
  expect(turnsOf(blocks).map(({ sequence, end }) => [Number(sequence), Number(end.sequence)])).toEqual([
    [3, 2],
    [4, 4],
  ]);
  expect(turnsOf([])).toEqual([]);
});
