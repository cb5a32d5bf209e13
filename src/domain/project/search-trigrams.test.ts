import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { gramQuery, isShort, searchGrams } from "./search-trigrams.ts";

test("the grams of a text are its characters by threes, line by line, and what is shorter at an end", () => {
  expect(searchGrams("ship\nab\n\n🐧é").trim().split(" ")).toEqual([
    "shi",
    "hip",
    "ip",
    "p",
    "ab",
    "b",
    "🐧é",
    "é",
  ]);
  expect(searchGrams("")).toBe("");
});

test("what the tokenizer would drop stands for itself in the private use area", () => {
  expect(searchGrams('a "\0').trim().split(" ")).toEqual([
    "a\ue020\ue022",
    "\ue020\ue022\ue000",
    "\ue022\ue000",
    "\ue000",
  ]);
  expect(gramQuery('a" *')).toBe('"a\ue022\ue020" AND "\ue022\ue020\ue02a"');
});

test("a term shorter than a gram asks for what begins with it, a longer one for each gram once", () => {
  expect(["a", "ab", "🐧🐧"].map(gramQuery)).toEqual(['"a"*', '"ab"*', '"🐧🐧"*']);
  expect(["abc", "aaaaa", "🐧🐧🐧"].map(gramQuery)).toEqual(['"abc"', '"aaa"', '"🐧🐧🐧"']);
  expect(["ab", "🐧🐧", "abc", "🐧🐧🐧"].map(isShort)).toEqual([true, true, false, false]);
});

test("a text that contains a term has every gram that the term asks for", () => {
  const line = fc.string({ unit: "binary", maxLength: 12 }).map((text) => text.replaceAll("\n", " "));
  const property = fc.property(line, line, line, (before, term, after) => {
    fc.pre(term !== "");
    const grams = searchGrams(`first\n${before}${term}${after}`).split(" ");
    return gramQuery(term)
      .split(" AND ")
      .every((wanted) => {
        const gram = wanted.slice(1, wanted.lastIndexOf('"'));
        return wanted.endsWith("*") ? grams.some((each) => each.startsWith(gram)) : grams.includes(gram);
      });
  });
  fc.assert(property, { numRuns: 500, ...replay });
});
