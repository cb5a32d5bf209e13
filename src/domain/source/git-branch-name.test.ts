import { spawnSync } from "node:child_process";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { branchNameProblem } from "./git-branch-name.ts";

/** Returns whether git accepts a branch of this name. */
function gitTakes(name: string): boolean {
  return spawnSync("git", ["check-ref-format", `refs/heads/${name}`]).status === 0;
}

describe("git takes a branch of the name", () => {
  test.each([
    "a",
    "main",
    "a/b/c",
    "a.b",
    "a-",
    "a@b",
    "a/@",
    "@a",
    "é/😀",
    "lock",
    "a.lockx",
    "refs/heads/a",
    "{a}",
    "HEADs",
    "a/HEAD",
    "a'\"$(id)`;&|<>",
  ])("%j", (name) => {
    expect(branchNameProblem(name)).toBeUndefined();
    expect(gitTakes(name)).toBe(true);
  });
});

describe("git takes no branch of the name", () => {
  test.each([
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".a",
    "a/.b",
    "a..b",
    "a.",
    "a.lock",
    "a.lock/b",
    "a b",
    "a~1",
    "a^",
    "a:b",
    "a?",
    "a*",
    "a[b",
    "a\\b",
    "a@{1}",
    "a\nb",
    "a\x7f",
    "a\x1f",
  ])("%j", (name) => {
    expect(branchNameProblem(name)).toEqual(expect.any(String));
    expect(gitTakes(name)).toBe(false);
  });

  // check-ref-format accepts these as references; as branches git rejects them or reads them as
  // something else.
  test.each(["-", "-a", "--force", "HEAD", "@"])("%j", (name) => {
    expect(branchNameProblem(name)).toEqual(expect.any(String));
  });
});

test("the rules are git's, for names made of what they speak of", () => {
  const piece = fc.constantFrom(
    "a",
    "/",
    ".",
    "..",
    ".lock",
    "@",
    "{",
    "@{",
    "-",
    "~",
    "^",
    ":",
    "?",
    "*",
    "[",
    "\\",
    " ",
    "\t",
    "\x7f",
    "é",
    "}",
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), (pieces) => {
      const name = pieces.join("");
      fc.pre(!name.startsWith("-") && name !== "@");
      expect(branchNameProblem(name) === undefined).toBe(gitTakes(name));
    }),
    { ...replay, numRuns: 300 },
  );
});
