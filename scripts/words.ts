import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Words that make a reader guess, with the plainer ones in their place. */
const RIDDLES: readonly (readonly [word: RegExp, plainer: string])[] = [
  [/\bbeside\b/gi, '"next to", "at the same time as" or "in addition to"'],
  [/\bstands?\b(?!-)/gi, '"is", "is in", "is placed" or "matches"'],
  [/\b(?:(?:is|are|was|were|be|been) )?told\b/gi, '"is notified", "receives", "is reported" or "is asked"'],
  [/\bof \w+ own accord\b/gi, '"by itself" or "automatically"'],
  [/\bmend(?:s|ed|ing)?\b/gi, '"fix"'],
  [/\bwhoever\b/gi, '"the caller" or "anybody who"'],
  [/\banew\b/gi, '"again"'],
];

/** Comments of code; an address in a text is none. */
const COMMENTS = /\/\*[\s\S]*?\*\/|(?<![:\\])\/\/.*/g;

/** Folders that are read whole. */
const FOLDERS = ["docs", "proto", "src", "console/src", "bench", "examples", "packages", "scripts", "test"];

/** Pages in the root of the repository, and the pages and code that are read in the folders. */
const READ =
  /^(?:(?:README|CONTRIBUTING|CHANGELOG)\.md|docs\/.*\.md|proto\/.*\.proto|(?:src|console|bench|examples|packages|scripts|test)\/.*\.(?:tsx?|m?js|go|java))$/;

/** Quotes riddles. */
const OWN_TEST = "test/words.test.ts";

/** Returns each riddle in pages and in the comments of contract and code, with its place and the plainer words. */
export function riddles(root: string): string[] {
  return ["", ...FOLDERS].flatMap((folder) => filesIn(root, folder)).flatMap((path) => riddlesIn(root, path));
}

function filesIn(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: folder !== "", encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => READ.test(path) && !path.includes("node_modules/") && path !== OWN_TEST);
}

function riddlesIn(root: string, path: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const prose = path.endsWith(".md") ? text : commentsOf(text);
  return RIDDLES.flatMap(([word, plainer]) =>
    [...prose.matchAll(word)].map((match) => {
      const line = prose.slice(0, match.index).split("\n").length;
      return `${path}:${line}: "${match[0]}": write ${plainer}`;
    }),
  );
}

/** Returns the text with nothing but its comments, each on its line. */
function commentsOf(text: string): string {
  let end = 0;
  let comments = "";
  for (const match of text.matchAll(COMMENTS)) {
    comments += text.slice(end, match.index).replaceAll(/[^\n]/g, "") + match[0];
    end = match.index + match[0].length;
  }
  return comments;
}
