import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

const ROOT = join(import.meta.dirname, "..");
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`),
];

/** Files and folders of the repository that a page names by their path from the root. */
function named(page: string): string[] {
  const paths = readFileSync(join(ROOT, page), "utf8").matchAll(
    /(?<![\w/.-])(?:src|test|scripts|bench|proto|docs|examples)\/[\w./-]*\w\/?/g,
  );
  return [...new Set([...paths].map(([path]) => path))];
}

test.each(PAGES.filter((page) => page.endsWith(".md")))("%s names no file that is not there", (page) => {
  // A migration's number, and files of a reader's own project.
  const missing = named(page).filter(
    (path) => !/NNNN|^src\/main\//.test(path) && !existsSync(join(ROOT, path)),
  );
  expect(missing).toEqual([]);
});
