import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../error/error.ts";
import { errorResult, MAX_RESULT_BYTES, resultOf } from "./tool-result.ts";

const READ = { isReadOnly: true };
const CHANGE = { isReadOnly: false };

/** An object whose JSON has so many bytes, in texts of 500 characters and one that fills it up. */
function sized(bytes: number): { readonly texts: readonly string[] } {
  const texts = Array.from({ length: Math.floor(bytes / 503) - 1 }, () => "x".repeat(500));
  const missing = bytes - JSON.stringify({ texts: [...texts, ""] }).length;
  return { texts: [...texts, "x".repeat(missing)] };
}

describe("a result", () => {
  test("is the answer as it is, as long as it has room", () => {
    const answer = sized(MAX_RESULT_BYTES);
    expect(Buffer.byteLength(JSON.stringify(answer))).toBe(MAX_RESULT_BYTES);
    expect(resultOf(answer, READ)).toEqual({
      value: answer,
      text: JSON.stringify(answer),
      isError: false,
      isShortened: false,
      isReplayed: false,
    });
  });

  test("has its long texts cut where it has not, and says how much is left out", () => {
    const answer = { patch: "x".repeat(MAX_RESULT_BYTES), nextToken: "t".repeat(2_000), count: 1 };
    const { value, text, isShortened } = resultOf(answer, READ);
    expect(value).toEqual({
      patch: `${"x".repeat(65_536)} … (65536 characters left out)`,
      nextToken: answer.nextToken,
      count: 1,
    });
    expect([isShortened, text]).toEqual([true, JSON.stringify(value)]);
  });

  test("cuts no character in two", () => {
    const { text } = resultOf({ patch: `x${"😀".repeat(MAX_RESULT_BYTES / 4)}` }, READ);
    expect(JSON.parse(text).patch.isWellFormed()).toBe(true);
  });

  test("counts bytes, not characters", () => {
    const { isShortened, text } = resultOf({ patch: "ü".repeat(MAX_RESULT_BYTES / 2) }, READ);
    expect([isShortened, Buffer.byteLength(text) <= MAX_RESULT_BYTES]).toEqual([true, true]);
  });

  test("of a read that has no room even so is an error that says what to do", () => {
    const answer = sized(MAX_RESULT_BYTES + 1);
    expect(() => resultOf(answer, READ)).toThrow("pagination.pageSize");
  });

  test("of a change never fails: its effect is there", () => {
    const { value, isError, isShortened } = resultOf(sized(2 * MAX_RESULT_BYTES), CHANGE);
    expect([isError, isShortened, (value as { texts: string[] }).texts.length]).toEqual([false, true, 10]);
    const wide = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [index, "x".repeat(100)]));
    expect(resultOf(wide, CHANGE).value).toEqual({});
  });
});

test("the result of an error tells its code, its reason and what is known of it", () => {
  const error = writeConnectError(ErrorReason.NOT_FOUND, "workflow not found", { resource: "workflow" });
  const { value, text, isError } = errorResult(error);
  expect(value).toEqual({
    code: "not_found",
    message: "workflow not found",
    reason: "ERROR_REASON_NOT_FOUND",
    metadata: { resource: "workflow" },
  });
  expect([isError, JSON.parse(text)]).toEqual([true, value]);
  expect(errorResult(new ConnectError("gone")).value).toEqual({ code: "unknown", message: "gone" });
});
