import { describe, expect, test } from "@jest/globals";
import { languageOf } from "../../console/src/parts/diff/languages.ts";
import { patchLines, patchOf, placeIn, quoteOf, visible } from "../../console/src/parts/diff/patch-lines.ts";

const PATCH = `diff --git a/app.txt b/app.txt
--- a/app.txt
+++ b/app.txt
@@ -1,3 +1,3 @@ function f() {
 one
-two
+zwei
 three
@@ -9 +9,2 @@
-nine
\\ No newline at end of file
+neun
+zehn
`;
const lines = patchLines(PATCH);

describe("the lines of a diff", () => {
  test("have their numbers before and after the change", () => {
    expect(lines.map((line) => [line.kind, line.old, line.new])).toEqual([
      ["hunk", 1, 1],
      ["same", 1, 1],
      ["deleted", 2, undefined],
      ["added", undefined, 2],
      ["same", 3, 3],
      ["hunk", 9, 9],
      ["deleted", 9, undefined],
      ["note", undefined, undefined],
      ["added", undefined, 9],
      ["added", undefined, 10],
    ]);
  });

  test("are drawn from a patch whose lengths are counted, and in which nothing hides", () => {
    expect(patchOf(lines)).toBe(
      PATCH.replace(/^diff.*\n/, "")
        .replaceAll(/ [ab]\/app.txt/g, " file")
        .replace("-9 +9", "-9,1 +9"),
    );
    const wrong = patchLines("@@ -1,99 +1 @@ \u202e\n+a\u0000\n@@ -5 +5 @@\n@@ -7 +7 @@\n-\u2066\n");
    expect(patchOf(wrong)).toBe(
      "--- file\n+++ file\n@@ -1,0 +1,1 @@ ‹202e›\n+a␀\n@@ -7,1 +7,0 @@\n-‹2066›\n",
    );
    expect(visible("a\tb\nc\r\u007f")).toBe("a\tb\nc␍‹007f›");
  });

  test.each([
    ["one line", { isOld: false, first: 2, last: 2 }, { isOld: false, first: 2, last: 2 }, "zwei"],
    ["several", { isOld: false, first: 1, last: 3 }, { isOld: false, first: 1, last: 3 }, "one\nzwei\nthree"],
    ["one that is gone", { isOld: true, first: 2, last: 2 }, { isOld: true, first: 2, last: 2 }, "two"],
    ["one that has stayed", { isOld: true, first: 3, last: 3 }, { isOld: false, first: 3, last: 3 }, "three"],
    ["some gone", { isOld: true, first: 1, last: 2 }, { isOld: true, first: 1, last: 2 }, "one\ntwo"],
    ["a gap", { isOld: false, first: 2, last: 10 }, { isOld: false, first: 10, last: 10 }, "zehn"],
  ])("are commented on where they are: %s", (_, chosen, place, quote) => {
    expect(placeIn(lines, chosen)).toEqual(place);
    expect(quoteOf(lines, place)).toBe(quote);
  });

  test("are commented on by twenty at most", () => {
    const many = patchLines(`@@ -0,0 +1,30 @@\n${"+x\n".repeat(30)}`);
    expect(placeIn(many, { isOld: false, first: 1, last: 20 })).toEqual({ isOld: false, first: 1, last: 20 });
    expect(placeIn(many, { isOld: false, first: 1, last: 21 })).toEqual({
      isOld: false,
      first: 21,
      last: 21,
    });
  });
});

test.each([
  ["typescript", "typescript"],
  ["zsh", "shellscript"],
  ["objective-cpp", "c"],
  ["fortran-fixed-form", "text"],
  ["constructor", "text"],
  ["text", "text"],
])("words of %s are coloured as those of %s", (found, name) => {
  expect(languageOf(found)).toBe(name);
});
