import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { type CommitAuthor, hasChanges, stageAll } from "../git/git-commit.ts";
import { type GitCall, type GitRepository, git, gitBytes, tryGit } from "../git/git-run.ts";
import type { GitTools } from "../git/git-tools.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** The state of a working tree: the checked-out commit, and the files as a git tree. */
export interface CommittableTree {
  readonly head: string;
  /** The id of the tree of all files that git does not ignore; undefined if it equals the commit's tree. */
  readonly tree: string | undefined;
  /**
   * When the newest of the changed files was written, in seconds since 1970 UTC; the time of the commit if nothing has
   * changed.
   */
  readonly seconds: number;
}

/** A snapshot's repository, which has a working tree. */
export type TreeCall = GitCall & { readonly repository: GitRepository & { readonly tree: string } };

/**
 * Reads the state of a working tree. Reads all files, since the tree's own index is not trusted.
 *
 * @throws WorkFailure no_commit
 */
export async function readTreeState(tools: GitTools, call: TreeCall): Promise<CommittableTree> {
  const found = await tryGit(tools, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], call);
  const head = found.stdout.trim();
  if (found.exit !== 0) throw new WorkFailure("no_commit", "the repository has no commit to push");
  for (const name of ["index", "MERGE_HEAD", "MERGE_MODE"])
    await rm(join(call.repository.gitFolder, name), { force: true });
  await git(tools, ["read-tree", head], call);
  const seconds = Number((await git(tools, ["show", "--no-patch", "--format=%ct", head], call)).trim());
  if (!(await hasChanges(tools, call, head))) return { head, tree: undefined, seconds };
  await stageAll(tools, call);
  const changed = await gitBytes(tools, ["diff-index", "--cached", "-z", "--name-only", head], call);
  const times = await Promise.all(
    changed
      .toString("latin1")
      .split("\0")
      .filter((path) => path !== "")
      .map((path) => timeOf(call.repository.tree, path)),
  );
  const tree = (await git(tools, ["write-tree"], call)).trim();
  const own = (await git(tools, ["rev-parse", `${head}^{tree}`], call)).trim();
  const now = Date.now() / 1_000;
  // Not Math.max(...times): there may be more changed files than a call accepts arguments.
  const newest = times.reduce((sofar, time) => (time <= now ? Math.max(sofar, time) : sofar), seconds);
  return { head, tree: tree === own ? undefined : tree, seconds: newest };
}

async function timeOf(folder: string, path: string): Promise<number> {
  const file = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, "latin1")]);
  return lstat(file).then(
    ({ mtimeMs }) => Math.floor(mtimeMs / 1_000),
    () => 0,
  );
}

/** The trailer of commits that are created from the uncommitted changes of an environment. */
const TRAILER = "Chartroom-Environment";

/** Returns the message for a commit of uncommitted changes. */
export function messageOf(message: string, environmentId: string): string {
  return `${message.trimEnd()}\n\n${TRAILER}: ${environmentId}\n`;
}

/** The git log format that prints the trailer of a commit. */
export const TRAILER_FORMAT = `%(trailers:key=${TRAILER},valueonly,unfold,separator=%x2C)`;

/** A commit of the files of a tree. */
export interface FilesCommit {
  readonly tree: string;
  readonly parent: string;
  readonly message: string;
  readonly author: CommitAuthor;
  readonly seconds: number;
}

/**
 * Creates a commit. The same values always give the same commit, so that a push that is retried, or repeated after its
 * approval, recognizes its own commit.
 *
 * @returns its id
 */
export async function commitFiles(
  tools: GitTools,
  call: GitCall,
  { tree, parent, message, author, seconds }: FilesCommit,
): Promise<string> {
  const date = `${seconds} +0000`;
  const environment = {
    ...call.environment,
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: author.name,
    GIT_COMMITTER_EMAIL: author.email,
    GIT_COMMITTER_DATE: date,
  };
  const args = ["commit-tree", tree, "-p", parent, "-F", "-"];
  return (await git(tools, args, { ...call, environment, input: message })).trim();
}
