import { realpathSync } from "node:fs";
import { join } from "node:path";
import { type CredentialFor, resolveRemoteAccess } from "../git/git-access.ts";
import { requireBranchName } from "../git/git-branch.ts";
import type { Checkout } from "../git/git-checkout.ts";
import type { CommitAuthor } from "../git/git-commit.ts";
import { pushFailure } from "../git/git-push.ts";
import type { PushOutcome } from "../git/git-push-outcome.ts";
import { type GitCall, git, tryGit } from "../git/git-run.ts";
import { withSnapshot } from "../git/git-snapshot.ts";
import type { GitTools } from "../git/git-tools.ts";
import { resolveInside } from "../git/tree-path.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Workspace } from "../steps/workspace.ts";
import { findOwnCommits, isAncestor, type RemoteBranch, readRemoteBranch } from "./remote-branch.ts";
import { type ScratchRepository, withScratchRepository } from "./scratch-repository.ts";
import { type CommittableTree, commitFiles, messageOf, readTreeState, type TreeCall } from "./tree-commit.ts";

/** A push from a repository of an environment. */
export interface TreePush {
  readonly environmentId: string;
  readonly branch: string;
  /** Message for a commit of uncommitted changes; if empty, uncommitted changes are a failure. */
  readonly commitMessage: string;
  readonly author: CommitAuthor;
  readonly credentialFor: CredentialFor;
  /** The content that was approved; absent for a dry run. */
  readonly decided?: DecidedPush | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Receives each stage as it begins, and then git's progress lines. */
  readonly onProgress?: ((stage: PushStage, line: string) => void) | undefined;
  /** Interval at which the scan of the files reports progress, in milliseconds; 30,000 when absent. */
  readonly progressIntervalMs?: number | undefined;
}

/** The stages of a push. `taking`: the remote has received everything and processes it. */
export type PushStage = "looking" | "copying" | "sending" | "taking";

/** The content that a push was approved for. */
export interface DecidedPush {
  readonly commit: string;
  /** The commit that the branch had; empty for none. */
  readonly tip: string;
  /** True if the branch may be the remote's default one. */
  readonly mayBeDefault: boolean;
  /** True if the branch may lose commits. */
  readonly mayForce: boolean;
}

/** The content of a push, and its destination. */
export interface PushReport {
  /** The remote, without a secret. */
  readonly remote: string;
  readonly commit: string;
  /** The commit that the branch had; empty for none. */
  readonly tip: string;
  /** The remote's default branch; empty where it names none. */
  readonly defaultBranch: string;
  /** The remote's branch that was checked out, or else the default one; empty for none. */
  readonly baseBranch: string;
  /** True if the push removes commits from the branch. */
  readonly isForced: boolean;
  /** The effect on the branch; absent after a dry run. */
  readonly outcome?: PushOutcome;
}

/**
 * Pushes the checked-out state of a workspace's repository to a branch of the remote that it was cloned from, or only
 * reports what would be pushed. Pushes from a repository of the runner's own: the tree does not change, and no file that
 * commands wrote to it decides the destination.
 *
 * @throws WorkFailure uncommitted_changes, nothing_to_push, branch_is_default, branch_moved, push_refused,
 *   repository_unsound, tree_too_large, and the failures of remote access
 */
export async function pushFromTree(
  tools: GitTools,
  workspace: Pick<Workspace, "tree">,
  checkout: Checkout,
  push: TreePush,
): Promise<PushReport> {
  const { signal, onProgress } = push;
  requireBranchName(push.branch);
  const access = await resolveRemoteAccess(tools, checkout.remoteUri, push.credentialFor);
  if (access.remote.scheme === "ssh") {
    throw new WorkFailure(
      "credential_not_own",
      "the remote is reached by ssh, with the key of the runner, which nobody pushes with: make the environment from the repository's https address, which takes your own credential",
    );
  }
  const folder = folderOf(workspace, checkout);
  onProgress?.("looking", "");
  return withSnapshot(tools, folder, async (snapshot) => {
    const { repository, borrowed } = snapshot;
    const tree: TreeCall = { repository: { ...repository, tree: folder }, readable: [borrowed], signal };
    const state = await inspectTree(tools, tree, push);
    const from = { base: checkout.commit, signal, onProgress: linesOf(push, "looking") };
    return withScratchRepository(tools, snapshot, from, async (scratch) => {
      const remote = { ...scratch.call, access, onProgress: linesOf(push, "looking") };
      const branch = await readRemoteBranch(tools, remote, push.branch, checkout);
      const commit = await commitOf(tools, { tree, remote }, state, branch, push);
      // If the branch already has the commit, nothing is pushed.
      if (commit !== branch.tip) await scratch.copy(commit, linesOf(push, "copying"));
      requireSameFolder(workspace, checkout, folder);
      return pushCommit(tools, { scratch, remote, branch, base: checkout.commit }, commit, push);
    });
  });
}

/** Interval at which the scan of the files reports progress, since git itself reports none. */
const PROGRESS_INTERVAL_MS = 30_000;
/** Maximum time of a git command that scans the files. */
const MAX_INSPECTION_MS = 900_000;

/** Reads the state of a tree, which may be large, and reports progress in the meantime. */
async function inspectTree(tools: GitTools, call: TreeCall, push: TreePush): Promise<CommittableTree> {
  const begunAt = performance.now();
  const tell = () => push.onProgress?.("looking", `for ${Math.round(performance.now() - begunAt)} ms`);
  const timer = setInterval(tell, push.progressIntervalMs ?? PROGRESS_INTERVAL_MS);
  try {
    return await readTreeState({ ...tools, timeoutMs: Math.min(tools.timeoutMs, MAX_INSPECTION_MS) }, call);
  } catch (error) {
    if (!(error instanceof WorkFailure) || error.reason !== "git_timed_out") throw error;
    const advice = "remove files that nobody needs, or have .gitignore name them";
    throw new WorkFailure(
      "tree_too_large",
      `there are too many files to look at: ${error.message}; ${advice}`,
    );
  } finally {
    clearInterval(timer);
  }
}

/** Begins a stage. @returns the receiver of git's progress lines; undefined if there is none */
function linesOf(
  { onProgress }: TreePush,
  stage: "looking" | "copying" | "sending",
): ((line: string) => void) | undefined {
  if (!onProgress) return undefined;
  onProgress(stage, "");
  return (line) => onProgress(stage === "sending" && line.startsWith("remote:") ? "taking" : stage, line);
}

/** Returns the folder of a repository; requires that no link redirects it. @throws WorkFailure repository_replaced */
function folderOf({ tree }: Pick<Workspace, "tree">, { location }: Checkout): string {
  const folder = join(realpathSync(tree), location);
  if (resolveInside(tree, location) === folder) return folder;
  throw new WorkFailure("repository_replaced", "the folder of the repository is a link to another one now");
}

function requireSameFolder(workspace: Pick<Workspace, "tree">, checkout: Checkout, folder: string): void {
  if (folderOf(workspace, checkout) !== folder)
    throw new WorkFailure("repository_replaced", "the folder of the repository was moved during the push");
}

/**
 * Returns the commit to push: the checked-out commit, or a new commit of the uncommitted changes on top of it. If earlier
 * pushes created such commits on the branch, the new one continues from them.
 */
async function commitOf(
  tools: GitTools,
  { tree: call, remote }: { readonly tree: TreeCall; readonly remote: RemoteCall },
  { head, tree, seconds }: CommittableTree,
  { address, tip }: RemoteBranch,
  { branch, commitMessage, environmentId, author }: TreePush,
): Promise<string> {
  if (tree === undefined) return head;
  if (commitMessage.trim() === "") {
    throw new WorkFailure(
      "uncommitted_changes",
      "the repository has changes that are not committed: have them committed, or give a message for a commit of them",
    );
  }
  const earlier =
    tip === "" || tip === head
      ? undefined
      : await findOwnCommits(tools, remote, { address, branch, tip, head, environmentId });
  if (earlier?.tree === tree) return tip;
  if (earlier) await lend(tools, remote, call, tip);
  const message = messageOf(commitMessage, environmentId);
  return commitFiles(tools, call, { tree, parent: earlier ? tip : head, message, author, seconds });
}

type RemoteCall = GitCall & ScratchRepository["call"];

/** Lets the snapshot read the objects of the scratch repository, which has the runner's earlier commit. */
async function lend(tools: GitTools, from: RemoteCall, to: TreeCall, commit: string): Promise<void> {
  const { repository } = from;
  const objects = join(repository.gitFolder, "objects");
  const { environment } = to;
  Object.assign(to, { environment: { ...environment, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects } });
  await git(tools, ["cat-file", "-e", `${commit}^{commit}`], to);
}

async function pushCommit(
  tools: GitTools,
  {
    scratch: { call: local },
    remote,
    branch: { address, tip, defaultBranch, baseBranch },
    base,
  }: {
    readonly scratch: ScratchRepository;
    readonly remote: RemoteCall;
    readonly branch: RemoteBranch;
    readonly base: string | undefined;
  },
  commit: string,
  push: TreePush,
): Promise<PushReport> {
  const { branch, decided } = push;
  const common = { remote: address, commit, tip, defaultBranch, baseBranch };
  if (tip === commit) return { ...common, isForced: false, ...(decided && { outcome: "unchanged" }) };
  if (commit === base) throw new WorkFailure("nothing_to_push", "nothing has changed in the repository");
  const isForced =
    tip !== "" && !(await isAncestor(tools, { local, remote }, { address, branch, tip, commit, base }));
  if (!decided) return { ...common, isForced };
  if (commit !== decided.commit || tip !== decided.tip) {
    throw new WorkFailure(
      "branch_moved",
      "the repository or the remote's branch has changed: try again",
      true,
    );
  }
  if (branch === defaultBranch && !decided.mayBeDefault)
    throw new WorkFailure("branch_is_default", "the branch is the remote's default branch: name another one");
  if (isForced && !decided.mayForce) {
    throw new WorkFailure("branch_taken", "the remote's branch has commits that the push would remove");
  }
  const ref = `refs/heads/${branch}`;
  // An empty tip means that the branch must not exist. A fast-forward needs no lease, since git itself checks it.
  const lease = tip === "" || isForced ? [`--force-with-lease=${ref}:${tip}`] : [];
  const options = ["--porcelain", "--progress", "--no-verify", ...lease];
  const args = ["push", ...options, "--", address, `${commit}:${ref}`];
  const result = await tryGit(tools, args, { ...remote, onProgress: linesOf(push, "sending") });
  if (result.exit !== 0) throw pushFailure(args, result, remote);
  return { ...common, isForced, outcome: tip === "" ? "created" : isForced ? "replaced" : "advanced" };
}
