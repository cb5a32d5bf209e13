import { create } from "@bufbuild/protobuf";
import {
  type AgentReviewComment as Comment,
  type AgentReviewComment_Present as Present,
  AgentReviewComment_PresentSchema as PresentSchema,
  type AgentReviewComment_Quote as Quote,
  AgentReviewComment_QuoteSchema as QuoteSchema,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import type { DiffBase, EnvironmentFileDiff } from "#gen/service/v1/environment_changes_pb.js";
import { diffBaseOf } from "../../environment/environment-changes.ts";
import { type ShownLines, shownLines, sideOf } from "./diff-lines.ts";

/** Number of lines that are kept on either side of a comment's lines (contract, AgentReviewComment.Quote). */
const CONTEXT_LINES = 2;

/** Lines with fewer letters and digits than this, such as `}`, match only if a neighbouring line matches too. */
const MIN_TELLING_CHARACTERS = 8;

/** A file of a stored diff. */
export interface DiffFile {
  readonly base: DiffBase;
  readonly file: EnvironmentFileDiff;
}

/** The stored diffs of an environment. */
export interface PresentDiffs {
  /** Returns the digest of the diff against a base; undefined if there is no such diff. */
  digestOf(base: DiffBase): string | undefined;
  /** Returns the files of all diffs whose present or former path is one of these. */
  filesNamed(paths: ReadonlySet<string>): readonly DiffFile[];
  /** Returns the new files of all diffs. */
  addedFiles(): readonly DiffFile[];
}

/** Returns whether a comment was made on a diff that is stored. */
export function isOnPresentDiff(
  { base, digest }: Pick<Comment, "base" | "digest">,
  diffs: PresentDiffs,
): boolean {
  return diffs.digestOf(diffBaseOf(base)) === digest;
}

/** Returns the lines of a comment on a stored diff; undefined if the diff does not show all of them. */
export function quoteOf(comment: Comment, diffs: PresentDiffs): Quote | undefined {
  const base = diffBaseOf(comment.base);
  const named = diffs.filesNamed(new Set([comment.path]));
  const found = named.find((each) => each.base === base && each.file.path === comment.path);
  if (!found) return undefined;
  const count = comment.lastLine - comment.firstLine + 1;
  for (const { first, lines } of shownLines(found.file.patch, sideOf(comment.side))) {
    const at = comment.firstLine - first;
    if (at < 0 || at + count > lines.length) continue;
    return create(QuoteSchema, {
      lines: lines.slice(at, at + count),
      before: lines.slice(Math.max(0, at - CONTEXT_LINES), at),
      after: lines.slice(at + count, at + count + CONTEXT_LINES),
      oldPath: found.file.oldPath,
    });
  }
  return undefined;
}

/** Returns where the lines of a comment are in the present diffs. */
export function presentOf(comment: Comment, diffs: PresentDiffs): Present {
  const { path, firstLine } = comment;
  const match = isOnPresentDiff(comment, diffs) ? { path, firstLine } : findLines(comment, diffs);
  if (!match) return create(PresentSchema, { state: State.OUTDATED });
  const isThere = match.path === path && match.firstLine === firstLine;
  return create(PresentSchema, {
    state: isThere ? State.CURRENT : State.MOVED,
    path: match.path,
    firstLine: match.firstLine,
    lastLine: match.firstLine + comment.lastLine - firstLine,
  });
}

/** A place that has the lines of a comment. */
interface Match {
  readonly path: string;
  readonly firstLine: number;
  /** Number of neighbouring lines that match too. */
  readonly sameNeighbours: number;
}

/** Returns the best match for the lines; undefined for none, or if several match equally well. */
function findLines({ path, side: asked, base, quote }: Comment, diffs: PresentDiffs): Match | undefined {
  if (!quote || quote.lines.length === 0) return undefined;
  const side = sideOf(asked);
  const own = [path, quote.oldPath].filter((each) => each !== "");
  // The base of a turn's diff differs from turn to turn, so lines of the old side are only searched in that diff.
  const named = filesOf(new Set(own), diffs).filter(
    (each) => side === Side.NEW || each.base === diffBaseOf(base),
  );
  const neighbours = quote.before.length + quote.after.length;
  if (named.length > 0) return best(matchesIn(named, side, quote), quote);
  if (side === Side.OLD) return undefined;
  // A renamed new file appears in the diff as another new file, so it is recognized by its lines.
  return best(
    matchesIn(diffs.addedFiles(), side, quote).filter(({ sameNeighbours }) => sameNeighbours === neighbours),
    quote,
  );
}

/** Returns the files that have one of these paths, or had one before a rename that any of the diffs shows. */
function filesOf(paths: ReadonlySet<string>, diffs: PresentDiffs): readonly DiffFile[] {
  const files = diffs.filesNamed(paths);
  const all = new Set([...paths, ...files.map(({ file }) => file.path)]);
  return all.size === paths.size ? files : diffs.filesNamed(all);
}

function matchesIn(files: readonly DiffFile[], side: Side.OLD | Side.NEW, quote: Quote): Match[] {
  return files.flatMap(({ file }) =>
    shownLines(file.patch, side).flatMap((hunk) =>
      matchesInHunk(hunk, quote).map((match) => ({ ...match, path: file.path })),
    ),
  );
}

function matchesInHunk(
  { first, lines }: ShownLines,
  { lines: wanted, before, after }: Quote,
): Omit<Match, "path">[] {
  const matches: Omit<Match, "path">[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at++) {
    if (!wanted.every((line, index) => lines[at + index] === line)) continue;
    const above = countSame([...before].reverse(), (index) => lines[at - 1 - index]);
    const below = countSame(after, (index) => lines[at + wanted.length + index]);
    matches.push({ firstLine: first + at, sameNeighbours: above + below });
  }
  return matches;
}

/** Returns the number of equal lines before the first that differs. */
function countSame(wanted: readonly string[], lineAt: (index: number) => string | undefined): number {
  const differs = wanted.findIndex((line, index) => lineAt(index) !== line);
  return differs < 0 ? wanted.length : differs;
}

function best(matches: readonly Match[], { lines, before, after }: Quote): Match | undefined {
  const most = Math.max(...matches.map(({ sameNeighbours }) => sameNeighbours));
  const found = matches.filter(({ sameNeighbours }) => sameNeighbours === most);
  const [first] = found;
  // Several diffs may show the same place, which is no ambiguity.
  if (!first || found.some(({ path, firstLine }) => path !== first.path || firstLine !== first.firstLine))
    return undefined;
  const needsNeighbour = before.length + after.length > 0 && !isTelling(lines);
  return needsNeighbour && most === 0 ? undefined : first;
}

function isTelling(lines: readonly string[]): boolean {
  const characters = lines.join("").match(/[\p{L}\p{N}]/gu);
  return (characters?.length ?? 0) >= MIN_TELLING_CHARACTERS;
}
