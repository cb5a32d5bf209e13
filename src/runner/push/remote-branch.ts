import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Checkout } from "../git/git-checkout.ts";
import { type GitCall, type GitRepository, git, tryGit } from "../git/git-run.ts";
import type { GitTools } from "../git/git-tools.ts";
import { MAX_NAMED_BYTES } from "../git/remote-refs.ts";
import { TRAILER_FORMAT } from "./tree-commit.ts";

/** A branch of a remote; it may not exist yet. */
export interface RemoteBranch {
  /** The remote's address, without a secret. */
  readonly address: string;
  /** The commit of the branch; empty if the branch does not exist. */
  readonly tip: string;
  /** The branch of the remote's HEAD; empty for none. */
  readonly defaultBranch: string;
  /** The remote's branch that was checked out, or else the default one; empty for none. */
  readonly baseBranch: string;
}

/** Reads a branch of a remote, and the branches that it may be merged into. */
export async function readRemoteBranch(
  tools: GitTools,
  call: GitCall & Required<Pick<GitCall, "access">>,
  branch: string,
  { branch: checkedOut }: Checkout,
): Promise<RemoteBranch> {
  const { address } = call.access.remote;
  const refs = [branch, checkedOut].flatMap((name) => (name === undefined ? [] : [`refs/heads/${name}`]));
  const args = ["ls-remote", "--symref", "--", address, "HEAD", ...refs];
  const lines = (await git(tools, args, { ...call, maxBytes: MAX_NAMED_BYTES })).split("\n");
  const commitOf = (name: string) =>
    lines.find((line) => line.endsWith(`\trefs/heads/${name}`))?.split("\t")[0] ?? "";
  const head = lines.find((line) => /^ref: refs\/heads\/.+\tHEAD$/.test(line)) ?? "";
  const defaultBranch = head.slice("ref: refs/heads/".length, -"\tHEAD".length);
  const isThere = checkedOut !== undefined && commitOf(checkedOut) !== "";
  return { address, tip: commitOf(branch), defaultBranch, baseBranch: isThere ? checkedOut : defaultBranch };
}

type RepositoryCall = GitCall & { readonly repository: GitRepository };

/** Depth of the first fetch, and the factor by which each later fetch is deeper. */
const FIRST_DEPTH = 50;
const DEPTH_FACTOR = 4;
/** The depth that makes git fetch the whole history. */
const WHOLE_DEPTH = 2 ** 31 - 1;

/** The local name of the remote's branch. */
const THEIRS = "refs/heads/theirs";

/** The commits of a branch that are compared. */
export interface ComparedBranch {
  readonly address: string;
  readonly branch: string;
  /** The commit of the remote's branch. */
  readonly tip: string;
  readonly commit: string;
  /** The commit that was checked out; undefined for none. */
  readonly base: string | undefined;
}

/**
 * Returns whether the tip of the remote's branch is an ancestor of a commit. Deepens shallow histories as far as needed
 * to decide that.
 */
export async function isAncestor(
  tools: GitTools,
  { local, remote }: { readonly local: RepositoryCall; readonly remote: RepositoryCall },
  { address, branch, tip, commit, base }: ComparedBranch,
): Promise<boolean> {
  const isAhead = async () =>
    (await tryGit(tools, ["merge-base", "--is-ancestor", tip, commit], local)).exit === 0;
  if (await isAhead()) return true;
  for (let depth = FIRST_DEPTH; ; depth = Math.min(depth * DEPTH_FACTOR, WHOLE_DEPTH)) {
    if (!(await hasCutHistory(local, commit, tools))) return false;
    const own = base === undefined ? [] : [`+${base}:refs/heads/base`];
    await fetchFrom(tools, remote, depth, address, [`+refs/heads/${branch}:${THEIRS}`, ...own]);
    if (await isAhead()) return true;
    if (depth === WHOLE_DEPTH) return false;
  }
}

/** Returns whether the history of a commit is shallow. */
async function hasCutHistory(call: RepositoryCall, commit: string, tools: GitTools): Promise<boolean> {
  const text = await readFile(join(call.repository.gitFolder, "shallow"), "utf8").catch(() => "");
  const cut = new Set(text.split("\n").filter((line) => line !== ""));
  if (cut.size === 0) return false;
  const commits = (await git(tools, ["rev-list", commit], call)).split("\n");
  return commits.some((each) => cut.has(each));
}

/** The commits that earlier pushes created from uncommitted changes. */
export interface OwnCommits {
  /** The tree of the newest. */
  readonly tree: string;
}

/**
 * Returns the commits on the remote's branch since a commit, if all of them were created from uncommitted changes of the
 * environment; otherwise undefined. A commit of the current files on top of them then reverts nobody else's changes.
 */
export async function findOwnCommits(
  tools: GitTools,
  remote: RepositoryCall,
  branch: Pick<ComparedBranch, "address" | "branch" | "tip"> & {
    readonly head: string;
    readonly environmentId: string;
  },
): Promise<OwnCommits | undefined> {
  await fetchFrom(tools, remote, FIRST_DEPTH, branch.address, [`+refs/heads/${branch.branch}:${THEIRS}`]);
  const format = `--format=%H%x09%P%x09%T%x09${TRAILER_FORMAT}`;
  const log = await git(tools, ["log", "--first-parent", format, THEIRS], remote);
  const lines = log.split("\n").map((line) => line.split("\t"));
  if (lines[0]?.[0] !== branch.tip) return undefined;
  for (const [, parents = "", , environmentId] of lines) {
    if (environmentId !== branch.environmentId || parents.includes(" ")) return undefined;
    if (parents === branch.head) return { tree: lines[0]?.[2] ?? "" };
  }
  return undefined;
}

function fetchFrom(
  tools: GitTools,
  remote: RepositoryCall,
  depth: number,
  address: string,
  refspecs: readonly string[],
): Promise<string> {
  const options = ["--progress", "--no-tags", "--no-write-fetch-head", `--depth=${depth}`];
  return git(tools, ["fetch", ...options, "--", address, ...refspecs], remote);
}
