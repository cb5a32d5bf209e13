import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WorkFailure } from "../protocol/work-failure.ts";
import { type GitCall, type GitRepository, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import { type CommitTrailers, mayReplace, parseTrailers, TRAILERS_FORMAT } from "./git-trailers.ts";

/** The change to the remote's branch. */
export type PushOutcome = "created" | "advanced" | "replaced" | "unchanged";

/** A commit to push to an existing branch of the remote. */
export interface BranchUpdate {
  /** The remote's address. */
  readonly address: string;
  readonly branch: string;
  /** The commit of the remote's branch. */
  readonly tip: string;
  readonly commit: string;
  /** The commit that was checked out, which the remote has; undefined if there was none. */
  readonly base: string | undefined;
  /** The trailers of the commit. */
  readonly trailers: CommitTrailers;
}

/**
 * Number of commits that the first fetch takes when the history is incomplete; each later fetch multiplies it by
 * {@link DEPTH_FACTOR}.
 */
const FIRST_DEPTH = 50;
const DEPTH_FACTOR = 4;
/** The depth that means the complete history to git. */
const WHOLE_DEPTH = 2 ** 31 - 1;

type RepositoryCall = GitCall & { readonly repository: GitRepository };

/**
 * Decides how the remote's branch changes. Fetches its tip, and as much of incomplete histories as the decision
 * needs.
 *
 * @throws WorkFailure branch_taken
 */
export async function decideOutcome(
  tools: GitTools,
  call: RepositoryCall,
  update: BranchUpdate,
): Promise<Exclude<PushOutcome, "created" | "unchanged">> {
  const { address, tip, commit, base, branch } = update;
  const ref = `refs/heads/${branch}`;
  // Git does not fetch objects again that a ref reaches.
  await git(tools, ["update-ref", "refs/heads/own", commit], call);
  const fetch = (...args: string[]) => git(tools, ["fetch", "--quiet", "--no-tags", ...args], call);
  if ((await tryGit(tools, ["cat-file", "-e", `${tip}^{commit}`], call)).exit !== 0) {
    const depth = (await shallowCommits(call)).size > 0 ? [`--depth=${FIRST_DEPTH}`] : [];
    await fetch(...depth, "--", address, `+${ref}:refs/heads/theirs`);
  }
  for (let depth = FIRST_DEPTH; ; depth = Math.min(depth * DEPTH_FACTOR, WHOLE_DEPTH)) {
    const cut = await shallowCommits(call);
    const outcome = await compare(tools, call, update, cut);
    if (outcome !== undefined) return outcome;
    if (cut.size === 0 || depth === WHOLE_DEPTH) throw branchTaken(branch);
    const own = base === undefined ? [] : [`+${base}:refs/heads/base`];
    await fetch(`--depth=${depth}`, "--", address, `+${ref}:refs/heads/theirs`, ...own);
  }
}

/**
 * Compares the known parts of the histories.
 *
 * @param cut the commits whose parents are not known
 * @returns undefined when they do not permit the update
 */
async function compare(
  tools: GitTools,
  call: GitCall,
  { tip, commit, trailers }: BranchUpdate,
  cut: ReadonlySet<string>,
): Promise<"advanced" | "replaced" | undefined> {
  const isAhead = await tryGit(tools, ["merge-base", "--is-ancestor", tip, commit], call);
  if (isAhead.exit === 0) return "advanced";
  const log = await git(tools, ["log", `--format=%H%x09${TRAILERS_FORMAT}`, tip, "--not", commit], call);
  const lines = log.split("\n").slice(0, -1);
  // The push would discard commits beyond the cut that nobody has looked at.
  if (lines.some((line) => cut.has(line.split("\t")[0] ?? ""))) return undefined;
  const lost = lines.map((line) => parseTrailers(line.slice(line.indexOf("\t") + 1)));
  return lost.length > 0 && mayReplace(lost, trailers) ? "replaced" : undefined;
}

/** Returns the shallow commits of a repository, whose parents are not fetched. */
async function shallowCommits({ repository }: RepositoryCall): Promise<ReadonlySet<string>> {
  const text = await readFile(join(repository.gitFolder, "shallow"), "utf8").catch(() => "");
  return new Set(text.split("\n").filter((line) => line !== ""));
}

function branchTaken(branch: string): WorkFailure {
  return new WorkFailure(
    "branch_taken",
    `the remote's branch ${JSON.stringify(branch)} has commits that are not this workflow's: ` +
      "name another branch, or merge or delete that one",
  );
}
