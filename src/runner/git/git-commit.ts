import { type GitCall, git, gitBytes, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import { type CommitTrailers, messageWithTrailers, parseTrailers, TRAILERS_FORMAT } from "./git-trailers.ts";

/** The author of a commit. */
export interface CommitAuthor {
  readonly name: string;
  readonly email: string;
}

export interface CommitRequest {
  readonly message: string;
  readonly author: CommitAuthor;
  readonly trailers: CommitTrailers;
}

/**
 * Returns whether a repository differs from the commit that was checked out, by committed or uncommitted changes.
 * Ignores ignored files and uncommitted changes in submodules.
 *
 * @param base absent when there was no commit
 */
export async function hasChanges(tools: GitTools, call: GitCall, base: string | undefined): Promise<boolean> {
  const status = await git(
    tools,
    ["status", "--porcelain", "--untracked-files=normal", "--no-renames", WITHOUT_SUBMODULES],
    call,
  );
  if (status !== "") return true;
  const tree = (commit: string) =>
    tryGit(tools, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${commit}^{tree}`], call);
  const head = await tree("HEAD");
  if (base === undefined) return head.exit === 0;
  return head.stdout !== (await tree(base)).stdout;
}

/**
 * Keeps git out of submodules, where it would start another git with that repository's settings. A submodule's
 * checked-out commit still counts.
 */
const WITHOUT_SUBMODULES = "--ignore-submodules=dirty";

/**
 * Commits all changes on the checked-out branch. If the step has already committed everything itself, adds the
 * trailers to its last commit, unless the remote already has that commit.
 *
 * @returns the last commit
 * @throws WorkFailure
 */
export async function commitAll(tools: GitTools, call: GitCall, req: CommitRequest): Promise<string> {
  const { name, email } = req.author;
  const as = {
    ...call,
    environment: {
      GIT_AUTHOR_NAME: name,
      GIT_AUTHOR_EMAIL: email,
      GIT_COMMITTER_NAME: name,
      GIT_COMMITTER_EMAIL: email,
    },
  };
  const commit = (message: string, ...options: string[]) =>
    git(tools, ["commit", "--quiet", "--no-verify", "--cleanup=whitespace", ...options, "--file=-"], {
      ...as,
      input: messageWithTrailers(message, req.trailers),
    });
  await stageAll(tools, call);
  const staged = await tryGit(tools, ["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"], call);
  if (staged.exit !== 0) await commit(req.message);
  else if (await isUnpublishedWithoutTrailers(tools, call, req.trailers)) {
    await commit(await git(tools, ["log", "-1", "--format=%B"], call), "--amend", "--allow-empty");
  }
  return (await git(tools, ["rev-parse", "--verify", "HEAD"], call)).trim();
}

/**
 * Stages like `git add --all`, but does not look into submodules. A repository inside the tree is staged as its
 * checked-out commit. Git reads that commit from the nested repository, so it runs apart and sees only the tree.
 */
export async function stageAll(tools: GitTools, whole: GitCall): Promise<void> {
  const call = { ...whole, isApart: true };
  // Exits with an error when files differ; the next commands list them.
  await tryGit(tools, ["update-index", "-q", "--refresh"], call);
  const changed = (...options: string[]) =>
    gitBytes(tools, ["diff-files", "-z", "--name-only", ...options, WITHOUT_SUBMODULES], call);
  // Remove these first without touching the tree: update-index fails for a path that now leads through a symbolic
  // link.
  for (const side of CONFLICT_SIDES) {
    await git(tools, ["update-index", "-z", "--force-remove", "--stdin"], {
      ...call,
      input: await changed("--diff-filter=D", side),
    });
  }
  const unknown = await gitBytes(tools, ["ls-files", "-z", "--others", "--exclude-standard"], call);
  // git lists a repository inside the tree as a folder with a trailing slash; add it as a commit.
  const paths = unknown.toString("latin1").replaceAll("/\0", "\0");
  // Also replaces paths that git considers unchanged (`--assume-unchanged`) and that are now something else.
  await git(tools, ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], {
    ...call,
    input: Buffer.concat([await changed(), Buffer.from(paths, "latin1")]),
  });
}

/** The versions of a conflicting path to compare with the tree. A missing path shows up in the versions that exist. */
const CONFLICT_SIDES = ["--base", "--ours", "--theirs"];

/** Returns whether the last commit was made in the workspace and lacks the action's trailers. */
async function isUnpublishedWithoutTrailers(
  tools: GitTools,
  call: GitCall,
  trailers: CommitTrailers,
): Promise<boolean> {
  const unpublished = await git(
    tools,
    ["rev-list", "--max-count=1", "HEAD", "--not", "--remotes", "--tags"],
    call,
  );
  if (unpublished === "") return false;
  const line = await git(tools, ["log", "-1", `--format=${TRAILERS_FORMAT}`], call);
  return parseTrailers(line.trimEnd()).actionId !== trailers.actionId;
}
