import { afterAll, expect, test } from "@jest/globals";
import { riddles } from "../scripts/words.ts";
import { stopAll } from "./harness/server.ts";
import { sourceTree } from "./harness/source-tree.ts";

afterAll(stopAll);

const FOLDERS = ["docs", "proto", "src", "console/src", "bench", "examples", "packages", "scripts", "test"];

/** Returns the riddles of a tree with these files, in which every folder that is read has one. */
function riddlesOf(files: Readonly<Record<string, string>>): string[] {
  return riddles(
    sourceTree({ ...Object.fromEntries(FOLDERS.map((name) => [`${name}/a.txt`, ""])), ...files }),
  );
}

test("pages and comments have a plain word for each riddle, or are named with line and plainer words", () => {
  expect(
    riddlesOf({ "docs/runners.md": "# Runners\n\nA runner is told of it, and Stands beside the server.\n" }),
  ).toEqual([
    'docs/runners.md:3: "beside": write "next to", "at the same time as" or "in addition to"',
    'docs/runners.md:3: "Stands": write "is", "is in", "is placed" or "matches"',
    'docs/runners.md:3: "is told": write "is notified", "receives", "is reported" or "is asked"',
  ]);
  expect(riddlesOf({ "proto/service/v1/a.proto": "// Never of its own accord.\n" })).toHaveLength(1);
  expect(riddlesOf({ "test/a.test.ts": "// Told\n", "packages/go/a.go": "// Beside it.\n" })).toHaveLength(2);
  expect(riddlesOf({ "README.md": "Whoever reads it begins anew.\n" })).toHaveLength(2);
  expect(
    riddlesOf({ "src/store/b.ts": "const a = 1;\n/**\n * Mends\n * it.\n */\nconst b = 2; // stands\n" }),
  ).toEqual([
    'src/store/b.ts:6: "stands": write "is", "is in", "is placed" or "matches"',
    'src/store/b.ts:3: "Mends": write "fix"',
  ]);
});

test("code, other words and other files are left alone", () => {
  const code = 'const beside = "it is told"; // besides, a stand-in of the standard\n';
  expect(riddlesOf({ "src/b.ts": code, "NOTES.md": "beside\n", "docs/a.json": "beside" })).toEqual([]);
});
