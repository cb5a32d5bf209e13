import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./program.ts";

/** A fenced block of a page. */
export interface FencedBlock {
  /** The second-level heading above it; empty before the first. */
  readonly section: string;
  /** The info string of the opening fence, such as `sh`. */
  readonly language: string;
  /** Its lines, each with its line end. */
  readonly text: string;
}

/**
 * Returns the fenced blocks of a page in order.
 *
 * @param path from the repository's root
 */
export function fencedBlocks(path: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let section = "";
  let open: { language: string; lines: string[] } | undefined;
  for (const line of readFileSync(join(ROOT, path), "utf8").split("\n")) {
    const fence = /^```(\w*)$/.exec(line);
    if (open && fence) {
      blocks.push({ section, language: open.language, text: open.lines.map((each) => `${each}\n`).join("") });
      open = undefined;
    } else if (open) open.lines.push(line);
    else if (fence) open = { language: fence[1] ?? "", lines: [] };
    else section = /^## (.+)$/.exec(line)?.[1] ?? section;
  }
  return blocks;
}

/** Returns the block of a language in a section; the position chooses among several. */
export function blockOf(
  blocks: readonly FencedBlock[],
  section: string,
  language: string,
  position = 0,
): string {
  const found = blocks.filter((block) => block.section === section && block.language === language)[position];
  if (!found) throw new Error(`the page has no block ${position} of ${language} under "${section}"`);
  return found.text;
}
