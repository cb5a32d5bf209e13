import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../../test/harness/seed.ts";
import { isShort, searchTrigrams, trigramQuery } from "./trigrams.ts";

test("the grams of a text are its characters by threes, line by line, and what is shorter at an end", () => {
  expect(searchTrigrams("ship\nab\n\n🐧é").trim().split(" ")).toEqual([
    "shi",
    "hip",
    "ip",
    "p",
    "ab",
    "b",
    "🐧é",
    "é",
  ]);
  expect(searchTrigrams("")).toBe("");
});

test("what the tokenizer would drop is mapped to the private use area", () => {
  expect(searchTrigrams('a "\0').trim().split(" ")).toEqual([
    "a\ue020\ue022",
    "\ue020\ue022\ue000",
    "\ue022\ue000",
    "\ue000",
  ]);
  expect(trigramQuery('a" *')).toBe('"a\ue022\ue020" AND "\ue022\ue020\ue02a"');
});

test("a term shorter than a gram asks for what begins with it, a longer one for each gram once", () => {
  expect(["a", "ab", "🐧🐧"].map(trigramQuery)).toEqual(['"a"*', '"ab"*', '"🐧🐧"*']);
  expect(["abc", "aaaaa", "🐧🐧🐧"].map(trigramQuery)).toEqual(['"abc"', '"aaa"', '"🐧🐧🐧"']);
  expect(["ab", "🐧🐧", "abc", "🐧🐧🐧"].map(isShort)).toEqual([true, true, false, false]);
});

test("a text that contains a term has every gram that the term asks for", () => {
  const line = fc.string({ unit: "binary", maxLength: 12 }).map((text) => text.replaceAll("\n", " "));
  const property = fc.property(line, line, line, (before, term, after) => {
    fc.pre(term !== "");
    const trigrams = searchTrigrams(`first\n${before}${term}${after}`).split(" ");
    return trigramQuery(term)
      .split(" AND ")
      .every((wanted) => {
        const trigram = wanted.slice(1, wanted.lastIndexOf('"'));
        return wanted.endsWith("*")
          ? trigrams.some((each) => each.startsWith(trigram))
          : trigrams.includes(trigram);
      });
  });
  fc.assert(property, { numRuns: 500, ...replay });
});
