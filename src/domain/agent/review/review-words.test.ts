import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  type AgentReviewCommentSchema,
  AgentReviewSchema,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import { reviewWords } from "./review-words.ts";

type Comment = MessageInitShape<typeof AgentReviewCommentSchema>;

const words = (summary: string, comments: Comment[], folder = "") =>
  reviewWords(create(AgentReviewSchema, { summary, comments }), folder);
const at = (path: string, firstLine: number, lastLine = firstLine) => ({
  path,
  firstLine,
  lastLine,
  present: { state: State.CURRENT, path, firstLine, lastLine },
});

describe("the words of a review", () => {
  test("are its summary, and each comment with its place, its lines and what it says", () => {
    const comments = [
      { ...at("app/a.ts", 2, 3), text: "Join these.", quote: { lines: ["one", "two"] } },
      { ...at("app/b.ts", 9), side: Side.OLD, text: "Why?\nIt was right.", quote: { lines: ["gone"] } },
      {
        ...at("app/c.ts", 4),
        text: "Rename it.",
        quote: { lines: ["was here"] },
        present: { state: State.OUTDATED },
      },
      {
        ...at("lib/d.ts", 4),
        text: "Moved?",
        quote: { lines: ["x"] },
        present: { state: State.MOVED, path: "lib/e.ts", firstLine: 7, lastLine: 7 },
      },
    ];
    expect(words("Nearly there.", comments, "app")).toEqual([
      `Review of your changes, 4 comments:

Nearly there.

1. a.ts, lines 2-3:
> one
> two
Join these.

2. b.ts, line 9, as they were before the changes:
> gone
Why?
It was right.

3. c.ts, line 4 (outdated: these lines have changed since the comment was made, or are gone):
> was here
Rename it.

4. ../lib/e.ts, line 7:
> x
Moved?`,
    ]);
  });

  test("are a summary alone, or comments alone", () => {
    expect(words("Good.", [])).toEqual(["Review of your changes:\n\nGood."]);
    expect(words("", [{ ...at("a", 1), text: "No." }])).toEqual([
      "Review of your changes, 1 comment:\n\n1. a, line 1:\nNo.",
    ]);
  });

  test("show a path that would be read otherwise in quotes", () => {
    const [text] = words("", [{ ...at("a\n2. b\u001b[2J\u009b\u202e.ts", 1), text: "No." }]);
    expect(text).toContain('1. "a\\n2. b\\u001b[2J\\u009b\\u202e.ts", line 1:');
  });

  test("are split between comments into texts that an agent may get", () => {
    const comments = Array.from({ length: 40 }, () => ({
      ...at("a", 1, 20),
      text: "x".repeat(4_096),
      quote: { lines: Array<string>(20).fill("y".repeat(160)) },
    }));
    const texts = words("z".repeat(8_192), comments);
    expect(texts.every(({ length }) => length <= 100_000)).toBe(true);
    expect(texts.length).toBeLessThan(10);
    expect(texts.join("\n\n").match(/^\d+\. a, lines 1-20:$/gm)).toHaveLength(40);
  });
});
