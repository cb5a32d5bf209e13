import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

const ROOT = join(import.meta.dirname, "..");
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`),
].filter((page) => page.endsWith(".md"));

/** Files and folders of the repository that a page names by their path from the root. */
function named(page: string): string[] {
  const paths = readFileSync(join(ROOT, page), "utf8").matchAll(
    /(?<![\w/.-])(?:src|test|scripts|bench|proto|docs|examples)\/[\w./-]*\w\/?/g,
  );
  return [...new Set([...paths].map(([path]) => path))];
}

test.each(PAGES)("%s names no file that is not there", (page) => {
  // A migration's number, and files of a reader's own project.
  const missing = named(page).filter(
    (path) => !/NNNN|^src\/main\//.test(path) && !existsSync(join(ROOT, path)),
  );
  expect(missing).toEqual([]);
});

/** The lines of a page without its blocks of code, which are left out as one line. */
function proseOf(page: string): string[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return text.replaceAll(/^(```+).*\n[\s\S]*?^\1$/gm, "code").split("\n");
}

/** The anchors of a page's headings. */
function anchorsOf(page: string): string[] {
  return proseOf(page)
    .filter((line) => /^#+ /.test(line))
    .map((line) => line.replace(/^#+ /, "").toLowerCase())
    .map((head) => head.replaceAll(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-"));
}

test.each(PAGES)("%s begins a heading after an empty line", (page) => {
  const lines = proseOf(page);
  expect(lines.filter((line, index) => /^#+ /.test(line) && index > 0 && lines[index - 1] !== "")).toEqual(
    [],
  );
});

test.each(PAGES)("%s links to pages and headings that are there", (page) => {
  const links = proseOf(page)
    .join("\n")
    .matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g);
  const missing = [...links].filter(([, path = "", anchor]) => {
    const target = path === "" ? page : join(page, "..", path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).includes(anchor);
  });
  expect(missing.map(([link]) => link)).toEqual([]);
});
