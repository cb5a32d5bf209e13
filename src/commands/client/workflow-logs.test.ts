import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { StreamActionLogsResponseSchema } from "#gen/service/v1/workflow_service_pb.js";
import { createFilter, textShow } from "./workflow-logs.ts";

const piece = (offset: number, text: string, place: { attempt?: number; stepIndex?: number } = {}) =>
  create(StreamActionLogsResponseSchema, {
    ...{ attempt: 1, stepIndex: 0, ...place },
    ...{ offset: BigInt(offset), data: Buffer.from(text) },
  });

/** Returns the printed text of pieces: for each, the number of missing bytes before it, and its text. */
function printed(...pieces: readonly ReturnType<typeof piece>[]) {
  const isNew = createFilter();
  return pieces
    .filter((each) => isNew(each))
    .map(({ offset, data, leftOutBytes }) => [
      Number(offset),
      Buffer.from(data).toString(),
      Number(leftOutBytes),
    ]);
}

test("a stream that begins again repeats nothing, also where the middle of a log went meanwhile", () => {
  const first = [piece(0, "begin"), piece(5, "middle"), piece(0, "two", { stepIndex: 1 })];
  expect(printed(...first.slice(0, 2), piece(0, "begin"), piece(8, "dle"), piece(11, "end"))).toEqual([
    [0, "begin", 0],
    [5, "middle", 0],
    [11, "end", 0],
  ]);
  expect(printed(...first.slice(0, 2), piece(0, "begin"), piece(8, "dle and on"))).toEqual([
    [0, "begin", 0],
    [5, "middle", 0],
    [11, " and on", 0],
  ]);
  expect(printed(...first.slice(0, 2), piece(0, "begin"), piece(15, "end"))).toEqual([
    [0, "begin", 0],
    [5, "middle", 0],
    [15, "end", 4],
  ]);
  expect(
    printed(...first, ...first, piece(3, "!", { stepIndex: 1 }), piece(0, "again", { attempt: 2 })),
  ).toEqual([
    [0, "begin", 0],
    [5, "middle", 0],
    [0, "two", 0],
    [3, "!", 0],
    [0, "again", 0],
  ]);
});

test("lines that end as those of other systems do are printed with a line feed alone, however they are cut", () => {
  const texts: string[] = [];
  const show = textShow((text) => texts.push(text));
  for (const each of [piece(0, "one\r"), piece(4, "\ntwo\r\n"), piece(9, "50 %\r"), piece(14, "100 %\r\n")])
    show(each);
  expect(texts.join("")).toBe("one\ntwo\n50 %\u{fffd}100 %\n");
  show(piece(0, "three\r", { stepIndex: 1 }));
  show(piece(0, "four", { stepIndex: 2 }));
  expect(texts.join("")).toMatch(/three\u{fffd}four$/u);
});
