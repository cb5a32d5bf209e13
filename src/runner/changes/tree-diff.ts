import { gitBytes } from "../git/git-run.ts";
import type { TreeRepository } from "./tree-repository.ts";

/** A file that differs between a tree and the runner's index, as git tells it. Texts are latin1: bytes as they are. */
export interface RawFileDiff {
  /** A for a new file, D for one that is gone, R for another path, T for another type, M for the rest. */
  readonly status: string;
  readonly path: string;
  /** Empty unless the status is R. */
  readonly oldPath: string;
  /** Octal; empty for no file. */
  readonly oldMode: string;
  readonly newMode: string;
  readonly oldHash: string;
  /** Undefined for a binary file. */
  readonly lines: { readonly added: number; readonly deleted: number } | undefined;
  /** The hunks; undefined where the output ended before. */
  readonly patch: string | undefined;
}

/** Options by which git starts no program, and follows no setting, for a diff. */
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
 * Compares a tree with the runner's index, renames found.
 * @param keepBytes bytes of patches that are read; files beyond have none
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
    // A file of another type is removed and created again.
    const own = sections.splice(0, entry.status === "T" ? 2 : 1);
    const isWhole = own.length === (entry.status === "T" ? 2 : 1);
    return { ...entry, lines: lines.get(entry.path), patch: isWhole ? own.map(hunksOf).join("") : undefined };
  });
}

/** Returns the paths, in latin1, that differ between a tree and the runner's index: of a renamed file both. */
export async function pathsUnlikeIndex({ tools, call }: TreeRepository, tree: string): Promise<string[]> {
  const own = [...OPTIONS, "--no-renames", "--name-only", "-z"];
  const list = await gitBytes(tools, ["diff-index", ...own, tree], call);
  return list.toString("latin1").split("\0").slice(0, -1);
}

type Entry = Omit<RawFileDiff, "lines" | "patch">;

/** Parses the output of `--raw --numstat -z`: fields that end with NUL, of which a rename has two paths. */
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

/** Returns the parts of a patch, one for each file: no line of a hunk begins as a header does, but a carriage return may precede what looks like one. */
function sectionsOf(output: Buffer, keepBytes: number): string[] {
  const sections = output
    .toString("latin1")
    .split(/(?<=\n)(?=diff --git )/)
    .filter((section) => section !== "");
  // The last one may have been cut.
  return output.length >= keepBytes ? sections.slice(0, -1) : sections;
}

/** Returns what follows the headers of a file; empty where nothing does, as of a binary one. */
function hunksOf(section: string): string {
  const start = section.indexOf("\n@@ ");
  return start < 0 ? "" : section.slice(start + 1);
}
