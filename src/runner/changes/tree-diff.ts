import { gitBytes } from "../git/git-run.ts";
import type { TreeRepository } from "./tree-repository.ts";

/** A file that differs between a tree and the runner's index, as git prints it. Texts are latin1, one byte a character. */
export interface RawFileDiff {
  /** A for added, D for deleted, R for renamed, T for another type, M for modified. */
  readonly status: string;
  readonly path: string;
  /** Empty unless the status is R. */
  readonly oldPath: string;
  /** Octal; empty if there was no file. */
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldHash: string;
  /** Undefined for a binary file. */
  readonly lines: { readonly added: number; readonly deleted: number } | undefined;
  /** The hunks; undefined if the output was truncated before their end. */
  readonly patch: string | undefined;
}

/** Options that keep git from starting other programs and from following the repository's diff settings. */
const OPTIONS = [
  "--cached",
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--ignore-submodules=all",
  "--find-renames",
  "-l400",
];

/**
 * Compares a tree with the runner's index and detects renames.
 * @param keepBytes maximum size of the patches that are read; files beyond it have no patch
 */
export async function diffWithIndex(
  { tools, call }: TreeRepository,
  tree: string,
  keepBytes: number,
): Promise<RawFileDiff[]> {
  const list = await gitBytes(
    tools,
    ["diff-index", ...OPTIONS, "--raw", "--numstat", "-z", "--abbrev=40", tree],
    call,
  );
  const { entries, lines } = parseList(list.toString("latin1"));
  if (entries.length === 0) return [];
  const output = await gitBytes(tools, ["diff-index", ...OPTIONS, "--patch", tree], { ...call, keepBytes });
  const sections = sectionsOf(output, keepBytes);
  return entries.map((entry) => {
    // Git shows a change of type as a deletion and a creation.
    const own = sections.splice(0, entry.status === "T" ? 2 : 1);
    const isWhole = own.length === (entry.status === "T" ? 2 : 1);
    return { ...entry, lines: lines.get(entry.path), patch: isWhole ? own.map(hunksOf).join("") : undefined };
  });
}

/** Returns the paths, in latin1, that differ between a tree and the runner's index; both paths of a renamed file. */
export async function pathsUnlikeIndex({ tools, call }: TreeRepository, tree: string): Promise<string[]> {
  const own = [...OPTIONS, "--no-renames", "--name-only", "-z"];
  const list = await gitBytes(tools, ["diff-index", ...own, tree], call);
  return list.toString("latin1").split("\0").slice(0, -1);
}

type Entry = Omit<RawFileDiff, "lines" | "patch">;

/** Parses the output of `--raw --numstat -z`. Fields end with NUL; a rename has two paths. */
function parseList(text: string): { entries: Entry[]; lines: Map<string, RawFileDiff["lines"]> } {
  const fields = text.split("\0");
  const entries: Entry[] = [];
  const lines = new Map<string, RawFileDiff["lines"]>();
  for (let at = 0; at < fields.length - 1; ) {
    const field = fields[at++] ?? "";
    const raw = /^:(\d+) (\d+) ([0-9a-f]+) [0-9a-f]+ ([A-Z])\d*$/.exec(field);
    if (raw) {
      const [, oldMode = "", newMode = "", oldHash = "", status = ""] = raw;
      const oldPath = status === "R" ? (fields[at++] ?? "") : "";
      const path = fields[at++] ?? "";
      entries.push({ status, path, oldPath, oldHash, oldMode: modeOf(oldMode), newMode: modeOf(newMode) });
      continue;
    }
    const [, added = "", deleted = "", name = ""] = /^(\d+|-)\t(\d+|-)\t([\s\S]*)$/.exec(field) ?? [];
    if (name === "") at += 1;
    const path = name === "" ? (fields[at++] ?? "") : name;
    if (added !== "-" && added !== "") lines.set(path, { added: Number(added), deleted: Number(deleted) });
  }
  return { entries, lines };
}

function modeOf(mode: string): string {
  return mode === "000000" ? "" : mode;
}

/**
 * Splits a patch into one section for each file. No line of a hunk begins like a header, but a text that looks like a
 * header may follow a carriage return, so only a line feed separates sections.
 */
function sectionsOf(output: Buffer, keepBytes: number): string[] {
  const sections = output
    .toString("latin1")
    .split(/(?<=\n)(?=diff --git )/)
    .filter((section) => section !== "");
  // The last one may be truncated.
  return output.length >= keepBytes ? sections.slice(0, -1) : sections;
}

/** Returns the part after a file's headers; empty when there is none, as for a binary file. */
function hunksOf(section: string): string {
  const start = section.indexOf("\n@@ ");
  return start < 0 ? "" : section.slice(start + 1);
}
