import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { fromStored, toStored } from "./text.ts";

const texts = fc.string({
  unit: fc.constantFrom("a", "\0", "\uE0FD", "\uE0FE", "\uE0FF", "\u{1F600}"),
  maxLength: 12,
});

test("a text comes back as it was, and none is stored with U+0000", () => {
  fc.assert(
    fc.property(texts, (text) => {
      const stored = String(toStored(text));
      expect(stored).not.toContain("\0");
      expect(fromStored(stored)).toBe(text);
    }),
    replay,
  );
});

test("a text contains another as it did", () => {
  fc.assert(
    fc.property(texts, texts, (text, part) => {
      expect(String(toStored(text)).includes(String(toStored(part)))).toBe(text.includes(part));
    }),
    replay,
  );
});

test("a text without these characters is stored as it is", () => {
  for (const text of ["", "ship", "Ä\u{1F600}", "\uE0FB"]) expect(toStored(text)).toBe(text);
  expect([toStored(1), toStored(null)]).toEqual([1, null]);
});
