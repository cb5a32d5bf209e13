import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import {
  AgentOutputBlockSchema,
  AgentOutputBlock_Question_State as QuestionState,
  AgentOutputBlock_ToolCall_Kind as ToolKind,
  AgentOutputBlock_ToolCall_State as ToolState,
} from "#gen/service/v1/agent_pb.js";
import { foldBlock, foldKey } from "./agent-output-fold.ts";

type Content = NonNullable<MessageInitShape<typeof AgentOutputBlockSchema>["block"]>;

const blockOf = (sequence: number, block: Content) =>
  create(AgentOutputBlockSchema, {
    sequence: BigInt(sequence),
    at: timestampFromMs(sequence),
    inputId: `input ${sequence}`,
    block,
  });

test.each<[string | null, Content]>([
  ["t:a", { case: "toolCall", value: { id: "a" } }],
  ["q:a", { case: "question", value: { id: "a" } }],
  ["p", { case: "plan", value: {} }],
  ["u", { case: "usage", value: {} }],
  [null, { case: "text", value: { content: "x" } }],
  [null, { case: "thought", value: { content: "x" } }],
  [null, { case: "toolRequest", value: { id: "a" } }],
])("the key %j is that of %j", (key, content) => {
  expect(foldKey(blockOf(1, content))).toBe(key);
});

describe("a folded block", () => {
  test("of one block is that block, which tells how far it is up to date", () => {
    const block = blockOf(7, { case: "text", value: { content: "x" } });
    expect(foldBlock(undefined, block)).toEqual({ ...block, lastSequence: 7n });
  });

  test("of a tool call has the place of the first, and the later fields that are not empty", () => {
    const first = blockOf(2, {
      case: "toolCall",
      value: {
        id: "a",
        title: "Read",
        kind: ToolKind.READ,
        state: ToolState.PENDING,
        locations: [{ path: "a.txt" }, { path: "b.txt" }],
        input: "{}",
      },
    });
    const second = blockOf(5, {
      case: "toolCall",
      value: { id: "a", state: ToolState.RUNNING, locations: [{ path: "c.txt", line: 3 }] },
    });
    const third = blockOf(9, {
      case: "toolCall",
      value: { id: "a", state: ToolState.DONE, result: "words" },
    });
    const folded = [second, third].reduce(foldBlock, foldBlock(undefined, first));
    expect(folded).toMatchObject({
      sequence: 2n,
      lastSequence: 9n,
      at: timestampFromMs(2),
      startedAt: timestampFromMs(5),
      endedAt: timestampFromMs(9),
      inputId: "input 2",
      block: {
        value: {
          id: "a",
          title: "Read",
          kind: ToolKind.READ,
          state: ToolState.DONE,
          locations: [{ path: "c.txt", line: 3 }],
          input: "{}",
          result: "words",
        },
      },
    });
    const foldedOf = (...blocks: readonly ReturnType<typeof blockOf>[]) =>
      blocks.reduce<ReturnType<typeof blockOf> | undefined>(foldBlock, undefined);
    const call = (sequence: number, state: ToolState) =>
      blockOf(sequence, { case: "toolCall", value: { id: "a", state } });
    const { PENDING, RUNNING, DONE, FAILED, UNSPECIFIED } = ToolState;
    // It has not ended while it runs, nor when it runs again, and words about it after its end change nothing.
    expect(foldedOf(call(1, RUNNING), call(2, UNSPECIFIED))).toMatchObject({ startedAt: timestampFromMs(1) });
    expect(foldedOf(call(1, RUNNING), call(2, UNSPECIFIED))?.endedAt).toBeUndefined();
    expect(foldedOf(call(1, RUNNING), call(2, DONE), call(3, RUNNING))?.endedAt).toBeUndefined();
    expect(foldedOf(call(1, RUNNING), call(2, FAILED), call(3, UNSPECIFIED), call(4, FAILED))).toMatchObject({
      startedAt: timestampFromMs(1),
      endedAt: timestampFromMs(2),
    });
    // Nobody knows how long a call took that was not seen to run.
    expect(foldedOf(call(1, PENDING), call(2, DONE))?.startedAt).toBeUndefined();
    // What was folded before has not changed.
    expect(first.block.value).toMatchObject({ state: ToolState.PENDING, result: "" });
  });

  test("of a question keeps what was asked", () => {
    const asked = blockOf(1, {
      case: "question",
      value: { id: "q", message: "Which?", schema: "{}", state: QuestionState.OPEN },
    });
    const answered = blockOf(4, { case: "question", value: { id: "q", state: QuestionState.ANSWERED } });
    expect(foldBlock(foldBlock(undefined, asked), answered)).toMatchObject({
      sequence: 1n,
      lastSequence: 4n,
      block: { value: { message: "Which?", schema: "{}", state: QuestionState.ANSWERED } },
    });
  });
});
