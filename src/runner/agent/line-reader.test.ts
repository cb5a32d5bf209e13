import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { LineReader, type OutputLine } from "./line-reader.ts";

const textsOf = (lines: readonly (OutputLine | undefined)[]) =>
  lines.flatMap((line) => {
    if (!line) return [];
    return [line.kind === "line" ? line.bytes.toString() : line.lengthBytes];
  });

test("lines come out whole however their bytes are cut, and what is too long leaves its length", () => {
  const line = fc.string({ maxLength: 12 }).map((text) => text.replaceAll("\n", " "));
  fc.assert(
    fc.property(
      fc.array(line),
      line,
      fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
      (ended, last, cuts) => {
        const bytes = Buffer.from([...ended.map((text) => `${text}\n`), last].join(""));
        const reader = new LineReader(8);
        const seen: (OutputLine | undefined)[] = [];
        for (let at = 0; at < bytes.length; ) {
          const length = cuts.next().value ?? 1;
          seen.push(...reader.write(bytes.subarray(at, at + length)));
          at += length;
        }
        seen.push(reader.end());
        const wanted = [...ended, ...(last === "" ? [] : [last])].map((text) => {
          const lengthBytes = Buffer.byteLength(text);
          return lengthBytes > 8 ? lengthBytes : text;
        });
        expect(textsOf(seen)).toEqual(wanted);
      },
    ),
    replay,
  );
});

test.each([
  [7, "1234567"],
  [8, "12345678"],
  [9, 9],
])("a line of %i bytes where 8 are kept", (length, wanted) => {
  const reader = new LineReader(8);
  expect(textsOf(reader.write(Buffer.from("123456789".slice(0, length))))).toEqual([]);
  expect(textsOf(reader.write(Buffer.from("\nnext\n")))).toEqual([wanted, "next"]);
  expect(reader.end()).toBeUndefined();
});
