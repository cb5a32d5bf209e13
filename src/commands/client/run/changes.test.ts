import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  EnvironmentFileDiffSchema,
  EnvironmentFileSchema,
  EnvironmentFileDiff_Kind as Kind,
  EnvironmentFileDiff_PatchOmission as Omission,
  EnvironmentFile_Kind as What,
} from "#gen/service/v1/environment_changes_pb.js";
import { diffText, filesTable } from "./changes.ts";

const modes = { oldMode: "100644", newMode: "100644" };
const fileOf = (file: object) => create(EnvironmentFileDiffSchema, { kind: Kind.CHANGED, ...modes, ...file });
const shown = (file: object, hasColours = false) =>
  diffText({ files: [fileOf(file)], leftOut: 0 }, hasColours);

describe("a diff", () => {
  test.each([
    [
      "of a changed file",
      { path: "a/b.c", patch: "@@ -1 +1 @@ main\n-one\n+two\n" },
      "diff --git a/a/b.c b/a/b.c\n--- a/a/b.c\n+++ b/a/b.c\n@@ -1 +1 @@ main\n-one\n+two\n",
    ],
    [
      "of a new file",
      { path: "n", kind: Kind.ADDED, oldMode: "", patch: "@@ -0,0 +1 @@\n+one\n" },
      "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+one\n",
    ],
    [
      "of a deleted file",
      { path: "n", kind: Kind.DELETED, newMode: "", patch: "@@ -1 +0,0 @@\n-one\n" },
      "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n",
    ],
    [
      "of a renamed program",
      { path: "new", oldPath: "old", kind: Kind.RENAMED, newMode: "100755" },
      "diff --git a/old b/new\nold mode 100644\nnew mode 100755\nrename from old\nrename to new\n",
    ],
    [
      "of a binary file",
      { path: "x", patchOmission: Omission.BINARY },
      "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
    ],
    [
      "of a large file",
      { path: "x", patchOmission: Omission.LARGE, sizeBytes: 7n },
      "diff --git a/x b/x\nFiles a/x and b/x differ, 7 bytes now: not shown\n",
    ],
  ])("%s has the form of git's", (_, file, text) => {
    expect(shown(file)).toBe(text);
  });

  test("holds nothing that controls a terminal, in names or lines", () => {
    const text = shown({
      path: 'a\n\x1b]0;x\x07"\u{9b}\u{202e}b',
      patch: "@@ -1 +1 @@\n-a\x1b[2Jb\r\n+c\u{9b}31m\n",
    });
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\u{202e}]/u);
    expect(text).toContain('+++ "b/a\\n\\033]0;x\\007\\"\\302\\233\\342\\200\\256b"\n');
    expect(text).toContain("-a\u{fffd}[2Jb\u{fffd}\n");
  });

  test("is coloured where that is asked for", () => {
    const text = shown({ path: "a", patch: "@@ -1 +1 @@ f\n-one\n+two\n same\n" }, true);
    expect(text).toContain("\x1b[36m@@ -1 +1 @@\x1b[m f\n\x1b[31m-one\x1b[m\n\x1b[32m+two\x1b[m\n same\n");
    expect(text.startsWith("\x1b[1mdiff --git a/a b/a\x1b[m\n")).toBe(true);
  });

  test("tells how many files are left out", () => {
    expect(diffText({ files: [], leftOut: 3 }, false)).toBe("3 more files differ\n");
    expect(diffText({ files: [], leftOut: 0 }, false)).toBe("");
  });
});

test("a list of files shows what each is, and no control character", () => {
  const files = [
    { name: "src", kind: What.FOLDER },
    { name: "run", kind: What.FILE, sizeBytes: 12n, executable: true },
    { name: "li\x1bnk", kind: What.LINK },
  ].map((file) => create(EnvironmentFileSchema, file));
  const lines = filesTable(files).split("\n").slice(1, -1);
  expect(lines.map((line) => line.trim())).toEqual([
    "src/",
    expect.stringMatching(/^12 +run\*$/),
    '"li\\033nk"@',
  ]);
});
