import type { DescEnum } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { CODE_OF_REASON } from "../../src/rpc/error/error.ts";
import { compile } from "./buf.ts";
import { leadingComment } from "./comments.ts";

const reasons = (compile("proto").getEnum("service.v1.ErrorReason") as DescEnum).values;
const sent = reasons.filter(({ number }) => number !== ErrorReason.UNSPECIFIED);

/** A code as the contract's comments and JSON errors write it. */
function written(code: Code): string {
  return Code[code].replace(/(?!^)[A-Z]/g, "_$&").toLowerCase();
}

describe("the catalogue of failures", () => {
  test("the table of codes has every reason of the contract, and no others", () => {
    const numbers = Object.keys(CODE_OF_REASON).map(Number);
    expect(numbers.sort((a, b) => a - b)).toEqual(reasons.map(({ number }) => number).sort((a, b) => a - b));
  });

  test("each reason's comment names one code, the one that the table gives", () => {
    const named = sent.map((reason) => [
      reason.name,
      [...leadingComment(reason).matchAll(/\bCode ([a-z_]+)\./g)].map((match) => match[1]),
    ]);
    const given = sent.map(({ name, number }) => [name, [written(CODE_OF_REASON[number as ErrorReason])]]);
    expect(named).toEqual(given);
  });

  test("each reason's comment says which metadata it carries", () => {
    const silent = sent.filter((reason) => !/No metadata|Metadata: `/.test(leadingComment(reason)));
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  test("the reason that is never sent would mean a fault of the server", () => {
    expect(leadingComment(reasons[0] as (typeof reasons)[number])).toBe("Never sent.");
    expect(CODE_OF_REASON[ErrorReason.UNSPECIFIED]).toBe(Code.Internal);
  });
});
