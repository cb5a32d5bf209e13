import { createHash } from "node:crypto";
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import { DICTIONARY, diffOf, packDiff } from "./packed-diff.ts";

const diffOfLength = (length: number) => `{"name":[null,"${"ab".repeat(length)}"]}`.slice(0, length);

describe("a diff", () => {
  test.each([255, 256, 257, 8_191, 8_192, 8_193])("of %d bytes is read as it was written", (length) => {
    const diff = diffOfLength(length);
    const columns = packDiff(diff);
    expect(diffOf(columns)).toBe(diff);
    expect([columns.diff === "", columns.packed_diff !== null]).toEqual(
      length < 256 || length > 8_192 ? [false, false] : [true, true],
    );
  });

  test("of characters of several bytes, of surrogates alone and of nothing is read as it was written", () => {
    for (const diff of ["", "{}", JSON.stringify({ "ü🚢": ["é".repeat(300), "\u0000\ud800".repeat(100)] })])
      expect(diffOf(packDiff(diff))).toBe(diff);
  });

  test("that stays long when it is packed is read as it was written", () => {
    const diff = JSON.stringify({
      name: [null, createHash("shake256", { outputLength: 3_000 }).digest("hex")],
    });
    const columns = packDiff(diff);
    expect(columns.packed_diff?.length).toBeGreaterThan(2 * 1_024);
    expect(diffOf(columns)).toBe(diff);
  });

  test("of many characters of several bytes is not packed beyond what can be read", () => {
    const diff = "é".repeat(8_000);
    expect(packDiff(diff)).toEqual({ diff, packed_diff: null });
  });

  test("that was packed by an earlier release is read as it was written: the dictionary is never edited", () => {
    const packed =
      "1dZBCoMwEAXQE43OxMRkjjPJTKRQaQkuevziToWWiqse4H/4f/V2ekISRyQEOmaG6GuGbDiAN+USXBqrhTPC2vZFiJQG4EoKDkkIq9c4rAfvF" +
      "LbJCEJEFeAgGYqST8HIcSpHqTU8Y7VPK4NLBbkWjbz2XfbcN5tNt6Wzl8zPu3WPNvWLydw3vES2H3f9N+ve";
    const diff = {
      id: [null, "01a211a1-d6b9-74fb-be03-4ed9c5286fe5"],
      metadata: [
        null,
        {
          workflowExecutionId: "01a211a1-d6b7-7183-9f1d-201a10f4d733",
          workflowId: "01a211a1-d6a0-70da-95ab-cd1485e1298c",
          actionName: "r0",
          report: false,
        },
      ],
      spec: [
        null,
        {
          session: "01a211a1-d6b9-74fb-be03-528c09fcd790",
          desiredPhase: "WORKFLOW_EXECUTION_ACTION_PHASE_DONE",
          context: { contextUrl: { url: "https://git.example.org/team/r0.git", environmentClassId: "" } },
        },
      ],
      status: [
        null,
        {
          session: "01a211a1-d6b9-74fb-be03-528c09fcd790",
          phase: "WORKFLOW_EXECUTION_ACTION_PHASE_PENDING",
          stepStatuses: [],
          environmentId: "",
          failureMessage: "",
          agentExecutionId: "",
          warningMessage: "",
          failures: [],
          warnings: [],
          attempt: 0,
        },
      ],
    };
    expect(diffOf({ diff: "", packed_diff: Buffer.from(packed, "base64") })).toBe(JSON.stringify(diff));
    const dictionary = createHash("sha256").update(DICTIONARY).digest("hex");
    expect(dictionary).toBe("e486145c5eb5c170e4efa63b6d40a7168e7fc0d2ae34c2ff4d0ac5eb7d86b012");
  });

  test("that a stranger packed is not read beyond the longest that is packed", () => {
    const packed_diff = deflateRawSync(Buffer.alloc(9_000));
    expect(() => diffOf({ diff: "", packed_diff })).toThrow();
  });
});
