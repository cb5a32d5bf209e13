import type { Target } from "../../domain/source/context-url.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { requireBranchName } from "./git-branch.ts";
import { FETCHED_REF, type Fetched } from "./git-fetch.ts";
import { type GitCall, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import { refNameOf } from "./remote-refs.ts";

/** The commit and branch that a target names in a repository. */
export interface Revision {
  /** The commit; absent for a branch without commits. */
  readonly commit?: string | undefined;
  /** The branch to check out; none when absent. */
  readonly branch?: string | undefined;
  /** True if it is the remote's branch of the same name. */
  readonly isRemote?: boolean;
}

/**
 * Skips the two reflogs that git would start at checkout. Later commands start them when they check out or commit.
 * Each of the five files and folders costs as much as a small command.
 */
const WITHOUT_LOGS = ["-c", "core.logAllRefUpdates=false"];

/** Checks out a revision and overwrites the files in the folder. */
export async function checkOutRevision(tools: GitTools, call: GitCall, revision: Revision): Promise<void> {
  const { commit, branch } = revision;
  if (commit === undefined) {
    if (branch !== undefined) await git(tools, ["symbolic-ref", "HEAD", `refs/heads/${branch}`], call);
  } else if (branch === undefined) {
    await git(tools, [...WITHOUT_LOGS, "checkout", "--quiet", "--force", "--detach", commit], call);
  } else {
    await git(tools, [...WITHOUT_LOGS, "checkout", "--quiet", "--force", "-B", branch, commit], call);
  }
}

/**
 * Resolves a target to a revision in a fetched repository.
 *
 * @throws WorkFailure revision_not_found, branch_name_invalid
 */
export async function resolveTarget(
  tools: GitTools,
  call: GitCall,
  fetched: Fetched,
  target: Target,
): Promise<Revision> {
  const revision = await resolveRevision(tools, call, fetched, target);
  if (revision.branch !== undefined) requireBranchName(revision.branch);
  return revision;
}

async function resolveRevision(
  tools: GitTools,
  call: GitCall,
  fetched: Fetched,
  target: Target,
): Promise<Revision> {
  switch (target.kind) {
    case "head":
      return revisionOfHead(fetched);
    case "local-branch":
      return { commit: fetched.headCommit, branch: target.name };
    case "branch": {
      const commit = fetched.refs.get(refNameOf("heads", target.name));
      return {
        commit: commit ?? throwRevisionNotFound("branch", target.name),
        branch: target.name,
        isRemote: true,
      };
    }
    case "tag": {
      const isThere = fetched.refs.has(refNameOf("tags", target.name));
      const commit = isThere && (await findCommit(tools, call, `refs/tags/${target.name}`));
      return { commit: commit || throwRevisionNotFound("tag", target.name) };
    }
    case "commit":
      return {
        commit:
          (await findCommitByHash(tools, call, target.hash)) ?? throwRevisionNotFound("commit", target.hash),
      };
    case "ref": {
      const commit = await findCommit(tools, call, FETCHED_REF);
      return { commit: commit ?? throwRevisionNotFound("revision", target.ref), branch: target.branch };
    }
    case "path":
      return revisionOfPath(tools, call, fetched, target);
  }
}

function revisionOfHead({ headCommit, defaultBranch }: Fetched): Revision {
  return { commit: headCommit, branch: defaultBranch, isRemote: headCommit !== undefined };
}

/**
 * Finds the longest prefix of a path that names a branch or tag, or else a commit in its first segment. For the page
 * of a tag, only the tag counts.
 */
async function revisionOfPath(
  tools: GitTools,
  call: GitCall,
  fetched: Fetched,
  { path, isTag }: Extract<Target, { kind: "path" }>,
): Promise<Revision> {
  const parts = path.split("/");
  for (let count = parts.length; count > 0; count--) {
    const name = parts.slice(0, count).join("/");
    for (const kind of isTag ? (["tag"] as const) : (["branch", "tag"] as const)) {
      if (fetched.refs.has(refNameOf(kind === "tag" ? "tags" : "heads", name))) {
        return resolveRevision(tools, call, fetched, { kind, name });
      }
    }
  }
  if (isTag) throwRevisionNotFound("tag", path);
  const [first = ""] = parts;
  if (first === "HEAD") return revisionOfHead(fetched);
  return {
    commit:
      (await findCommitByHash(tools, call, first)) ?? throwRevisionNotFound("branch, tag or commit", path),
  };
}

async function findCommitByHash(tools: GitTools, call: GitCall, hash: string): Promise<string | undefined> {
  return /^[0-9a-f]{4,64}$/i.test(hash) ? findCommit(tools, call, hash) : undefined;
}

/** Characters that no ref name contains and that git would parse as more than a name. */
const NO_REF = /[\p{Cc} ~^:?*[\\]|\.\.|@\{/u;

/** Returns the commit of a ref or hash; undefined when there is none. */
async function findCommit(tools: GitTools, call: GitCall, name: string): Promise<string | undefined> {
  if (NO_REF.test(name)) return undefined;
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  const { exit, stdout } = await tryGit(tools, args, call);
  return exit === 0 ? stdout.trim() : undefined;
}

function throwRevisionNotFound(kind: string, name: string): never {
  throw new WorkFailure("revision_not_found", `the remote has no ${kind} ${JSON.stringify(name)}`);
}
