import { describe, expect, test } from "@jest/globals";
import { fold } from "./fold.ts";

const letters: string[] = [];
for (let code = 0; code <= 0x10ffff; code++) {
  const character = String.fromCodePoint(code);
  if (/\p{Changes_When_Casemapped}|\p{Changes_When_Casefolded}/u.test(character)) letters.push(character);
}
const all = letters.join("");

describe("folding of case", () => {
  test("agrees with the engine's simple case folding for every cased character of Unicode", () => {
    const disagreements: string[] = [];
    for (const letter of letters) {
      const engine = all.match(new RegExp(letter, "giu"))?.join("");
      const ours = letters.filter((other) => fold(other) === fold(letter)).join("");
      if (engine !== ours) disagreements.push(`${letter}: engine ${engine}, ours ${ours}`);
    }
    expect(letters.length).toBeGreaterThan(2_500);
    expect(disagreements).toEqual([]);
  });

  test.each([
    ["STRASSE", "strasse"],
    ["ΣΊΣΥΦΟΣ", "σίσυφοσ"],
    ["ẞ", "ß"],
    ["K", "k"],
  ])("takes %s and %s for the same", (one, other) => {
    expect(fold(one)).toBe(fold(other));
  });

  test.each([
    ["ß", "ss"],
    ["İ", "i"],
    ["ı", "i"],
  ])("keeps %s and %s apart, as simple folding does", (one, other) => {
    expect(fold(one)).not.toBe(fold(other));
  });

  test("changes nothing without case", () => {
    expect(fold("東京-42_é́")).toBe("東京-42_é́");
  });
});
