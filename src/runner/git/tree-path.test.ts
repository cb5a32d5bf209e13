import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { WorkFailure } from "../protocol/work-failure.ts";
import { requireInPlace, resolveInside } from "./tree-path.ts";

const outside = realpathSync(mkdtempSync(join(tmpdir(), "chartroom-path-")));
afterAll(() => rmSync(outside, { recursive: true, force: true }));

const root = join(outside, "tree");
mkdirSync(join(root, "a/b"), { recursive: true });
mkdirSync(join(outside, "tree-sibling"));
writeFileSync(join(root, "a/file"), "");
writeFileSync(join(outside, "secret"), "");
symlinkSync("..", join(root, "a/up"));
symlinkSync("b", join(root, "a/within"));
symlinkSync(join(root, "a/b"), join(root, "absolute-within"));
symlinkSync("../secret", join(root, "secret"));
symlinkSync("..", join(root, "out"));
symlinkSync("../tree-sibling", join(root, "sibling"));
symlinkSync("/etc", join(root, "etc"));
symlinkSync("out/secret", join(root, "by-two"));
symlinkSync("nothing", join(root, "dangling"));
symlinkSync("loop", join(root, "loop"));
symlinkSync("..hidden", join(root, "dots"));
mkdirSync(join(root, "..hidden"));

test.each([
  ["", ""],
  [".", ""],
  ["a", "a"],
  ["./a//b/", "a/b"],
  ["a/file", "a/file"],
  ["not/there/yet", "not/there/yet"],
  ["a/file/below", "a/file/below"],
  ["a/within/x", "a/b/x"],
  ["a/up/a/b", "a/b"],
  ["absolute-within", "a/b"],
  ["..hidden/x", "..hidden/x"],
  ["dots", "..hidden"],
  [".github/x", ".github/x"],
  ["back\\..\\slash", "back\\..\\slash"],
])("%j is %j inside the folder", (path, expected) => {
  expect(resolveInside(root, path)).toBe(join(root, expected));
});

test.each([
  "/etc/passwd",
  "/",
  "..",
  "../secret",
  "a/../../secret",
  "a/..",
  "secret",
  "out",
  "out/secret",
  "out/tree/a",
  "sibling",
  "etc/passwd",
  "by-two",
  "dangling",
  "dangling/x",
  "loop",
  "a\0b",
  ".git",
  "a/.GIT/hooks",
  `${"x".repeat(256)}/a`,
])("%j is refused", (path) => {
  expect(() => resolveInside(root, path)).toThrow(WorkFailure);
  expect(() => resolveInside(root, path)).toThrow("name one inside the repository");
});

test("a folder that is itself reached by a symbolic link is a folder like any other", () => {
  symlinkSync(root, join(outside, "link"));
  expect(resolveInside(join(outside, "link"), "a/b")).toBe(join(root, "a/b"));
});

test("a repository is in place where no link leads to another folder", () => {
  for (const location of ["", "a", "a/b", "not/there"])
    expect(() => requireInPlace(root, location)).not.toThrow();
  for (const location of ["a/within", "absolute-within", "out", "sibling", "out/tree/a"])
    expect(() => requireInPlace(root, location)).toThrow("is a link to another one now");
});
