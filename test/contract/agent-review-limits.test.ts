import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { CreateAgentReviewDraftRequestSchema as Create } from "#gen/service/v1/agent_review_service_pb.js";
import { SendToAgentExecutionRequestSchema as Send } from "#gen/service/v1/agent_service_pb.js";
import { brief, complaint, ID, texts, withValue } from "./limit.ts";

const DIGEST = "0123456789abcdef".repeat(4);
const COMMENT = { path: "a.ts", firstLine: 3, lastLine: 4, digest: DIGEST, text: "No." };
const DRAFT: JsonObject = { agentExecutionId: ID, comments: [COMMENT] };

const comments = (...counts: number[]): JsonValue[] =>
  counts.map((count) => Array.from({ length: count }, () => COMMENT));
const lines = (...counts: number[]): JsonValue[] => counts.map((count) => Array<string>(count).fill("x"));

const LIMITS: readonly (readonly [
  path: string,
  passes: readonly JsonValue[],
  fails: readonly JsonValue[],
])[] = [
  ["summary", texts(0, 8_191, 8_192), texts(8_193)],
  ["comments", comments(0, 39, 40), comments(41)],
  ["comments[0].path", texts(1, 1_023, 1_024), texts(0, 1_025)],
  ["comments[0].side", [0, 2], [3]],
  ["comments[0].firstLine", [1, 3, 4], [0, -1]],
  ["comments[0].lastLine", [3, 21, 22], [0, 2, 23]],
  ["comments[0].base", [0, 2], [3]],
  ["comments[0].digest", [DIGEST], ["", DIGEST.slice(1), `${DIGEST}0`, DIGEST.toUpperCase()]],
  ["comments[0].text", texts(1, 4_095, 4_096), texts(0, 4_097)],
  ["comments[0].quote.lines", lines(0, 19, 20), lines(21)],
  ["comments[0].quote.before", lines(0, 1, 2), lines(3)],
  ["comments[0].quote.after", lines(0, 1, 2), lines(3)],
  ["comments[0].quote.oldPath", texts(0, 1_023, 1_024), texts(1_025)],
];

describe("a draft of a review", () => {
  const cases = (of: 1 | 2) =>
    LIMITS.flatMap((limit) => limit[of].map((value) => [limit[0], brief(value), value] as const));

  test.each(cases(1))("takes as %s: %s", (path, _, value) => {
    expect(complaint(Create, withValue(DRAFT, path, value))).toBeUndefined();
  });

  test.each(cases(2))("does not take as %s: %s", (path, _, value) => {
    expect(complaint(Create, withValue(DRAFT, path, value))).toMatch(/ \[comments\[0\]|\[comments|\[summary/);
  });

  test("takes lines of at most 160 characters as those that a comment is on", () => {
    const quote = (length: number) => withValue(DRAFT, "comments[0].quote.lines", ["x".repeat(length)]);
    expect([quote(159), quote(160)].map((draft) => complaint(Create, draft))).toEqual([undefined, undefined]);
    expect(complaint(Create, quote(161))).toContain("[comments[0].quote.lines[0]");
  });
});

describe("a review in a message", () => {
  const tell = (review: JsonObject) =>
    complaint(Send, { agentExecutionId: ID, userInput: { inputs: [{ review }] } });

  test.each([
    { summary: "Good." },
    { comments: [COMMENT] },
    { summary: "Good.", comments: [COMMENT] },
    { draftId: ID },
    { draftId: ID, draftRevision: "3" },
  ])("is %j", (review) => {
    expect(tell(review)).toBeUndefined();
  });

  test.each([
    {},
    { draftId: "x" },
    { draftRevision: "3" },
    { draftId: ID, draftRevision: "-1" },
    { summary: "Good.", draftRevision: "3" },
    { draftId: ID, summary: "Good." },
    { draftId: ID, comments: [COMMENT] },
  ])("is not %j", (review) => {
    expect(tell(review)).toContain("userInput.inputs[0].review");
  });
});
