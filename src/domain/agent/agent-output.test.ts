import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type AgentOutputBlock, AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import { appendText, newBlocks } from "./agent-output.ts";

const block = (sequence: number, content = `${sequence}`, inputId = ""): AgentOutputBlock =>
  create(AgentOutputBlockSchema, {
    sequence: BigInt(sequence),
    inputId,
    block: { case: "text", value: { content } },
  });
const place = (lastSequence: number) => ({ lastSequence, inputId: "input", now: 7 });
const numbers = (blocks: readonly AgentOutputBlock[]) => blocks.map(({ sequence }) => Number(sequence));

describe("reported blocks", () => {
  test("go on behind the last one, and what is known already is skipped", () => {
    expect(numbers(newBlocks([block(1), block(2)], place(0)))).toEqual([1, 2]);
    expect(numbers(newBlocks([block(2), block(3), block(4)], place(3)))).toEqual([4]);
    expect(newBlocks([block(1), block(2)], place(2))).toEqual([]);
  });

  test("get the time at which they came, and the input that the agent got last unless they say theirs", () => {
    expect(newBlocks([block(1), block(2, "x", "other")], place(0))).toMatchObject([
      { at: timestampFromMs(7), inputId: "input" },
      { at: timestampFromMs(7), inputId: "other" },
    ]);
  });

  test.each([
    ["a gap behind what is known", [block(5)]],
    ["a gap among themselves", [block(4), block(6)]],
    ["the number 0", [block(0)]],
    ["a number below 0", [block(-1)]],
  ])("with %s are refused", (_, blocks) => {
    expect(() => newBlocks(blocks, place(3))).toThrow(/leaves a gap: the next one has the number [45]/);
  });

  test("that say nothing are refused", () => {
    const empty = create(AgentOutputBlockSchema, { sequence: 1n });
    expect(() => newBlocks([empty], place(0))).toThrow("has no content");
  });

  test("make one sequence without gaps, in whatever pieces and repetitions they come", () => {
    const reports = fc.array(fc.tuple(fc.nat(5), fc.nat(6)), { maxLength: 30 });
    fc.assert(
      fc.property(reports, (steps) => {
        const stored: AgentOutputBlock[] = [];
        for (const [back, count] of steps) {
          const from = Math.max(1, stored.length + 1 - back);
          const blocks = Array.from({ length: count }, (_, index) => block(from + index));
          stored.push(...newBlocks(blocks, place(stored.length)));
          expect(numbers(stored)).toEqual(stored.map((_, index) => index + 1));
        }
      }),
      replay,
    );
  });
});

describe("the words of blocks", () => {
  test("are those of texts, one behind the other", () => {
    const error = create(AgentOutputBlockSchema, { block: { case: "error", value: { message: "no" } } });
    expect(appendText("So ", [block(1, "I "), error, block(2, "went.")], 100)).toBe("So I went.");
  });

  test.each([
    [4, "😀😀😀"],
    [3, "😀😀😀"],
    [2, "😀😀"],
  ])("are cut to %i characters", (maxCharacters, words) => {
    expect(appendText("", [block(1, "😀😀"), block(2, "😀")], maxCharacters)).toBe(words);
  });
});
