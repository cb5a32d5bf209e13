import { constants, copyFile, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { WorkFailure } from "../protocol/work-failure.ts";
import { type CredentialFor, resolveRemoteAccess } from "./git-access.ts";
import { requireBranchName } from "./git-branch.ts";
import { decideOutcome, type PushOutcome } from "./git-push-outcome.ts";
import { type GitCall, type GitRepository, type GitResult, git, gitFailureOf, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import type { CommitTrailers } from "./git-trailers.ts";
import { MAX_NAMED_BYTES } from "./remote-refs.ts";

export interface PushRequest {
  /** The repository that has the commit. */
  readonly repository: GitRepository;
  /** The remote's address as recorded by the checkout. */
  readonly remoteUri: string;
  readonly commit: string;
  /** The commit that was checked out; absent when there was none. */
  readonly base?: string | undefined;
  readonly branch: string;
  /** The trailers of the commit. */
  readonly trailers: CommitTrailers;
  /** Object folders that the repository borrows, directly or through links; none when absent. */
  readonly borrowed?: readonly string[];
  readonly credentialFor: CredentialFor;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Pushes a commit to a branch of the remote. Advances an existing branch when the commit descends from it, and
 * replaces it when `mayReplace` allows that; both only if the branch has not moved since it was read. Refuses any
 * other existing branch, and the remote's default branch.
 *
 * @throws WorkFailure branch_name_invalid, branch_is_default, branch_taken, branch_moved, push_refused, and
 *   everything that reaching a remote throws
 * @throws the reason of `signal` when it was aborted
 */
export async function pushBranch(tools: GitTools, req: PushRequest): Promise<PushOutcome> {
  const { branch, signal } = req;
  requireBranchName(branch);
  const access = await resolveRemoteAccess(tools, req.remoteUri, req.credentialFor);
  const folder = await mkdtemp(join(tools.scratch, "push-"));
  try {
    // Git gets the credential only in a repository without refs and settings, which merely reads the objects of the
    // other one.
    const call = { repository: { gitFolder: folder }, signal };
    await git(tools, ["init", "--quiet", "--bare", "--template="], call);
    await copyShallow(req.repository.gitFolder, folder);
    const environment = { GIT_OBJECT_DIRECTORY: join(req.repository.gitFolder, "objects") };
    const { borrowed: readable = [] } = req;
    return await push(tools, { ...call, access, environment, readable }, access.remote.address, req);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies the `shallow` file, which lists where an incomplete history ends. */
async function copyShallow(from: string, to: string): Promise<void> {
  try {
    await copyFile(join(from, "shallow"), join(to, "shallow"), constants.COPYFILE_EXCL);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

async function push(
  tools: GitTools,
  call: GitCall & { readonly repository: GitRepository },
  address: string,
  { commit, base, branch, trailers }: PushRequest,
): Promise<PushOutcome> {
  const ref = `refs/heads/${branch}`;
  const tip = await findRemoteTip(tools, call, address, ref);
  if (tip === commit) return "unchanged";
  const outcome =
    tip === undefined
      ? "created"
      : await decideOutcome(tools, call, { address, branch, tip, commit, base, trailers });
  // An empty expected value means that the branch must not exist.
  const lease = outcome === "advanced" ? [] : [`--force-with-lease=${ref}:${tip ?? ""}`];
  const args = ["push", "--porcelain", "--no-verify", ...lease, "--", address, `${commit}:${ref}`];
  const result = await tryGit(tools, args, call);
  if (result.exit !== 0) throw pushFailure(args, result, call);
  return outcome;
}

/** Returns the commit of the remote's branch; undefined when there is no such branch. */
async function findRemoteTip(
  tools: GitTools,
  call: GitCall,
  address: string,
  ref: string,
): Promise<string | undefined> {
  const args = ["ls-remote", "--symref", "--", address, "HEAD", ref];
  const lines = (await git(tools, args, { ...call, maxBytes: MAX_NAMED_BYTES })).split("\n");
  if (lines.includes(`ref: ${ref}\tHEAD`)) {
    throw branchIsDefault();
  }
  return lines.find((line) => line.endsWith(`\t${ref}`))?.split("\t")[0];
}

/** Returns the failure of a push to the remote's default branch. */
export function branchIsDefault(): WorkFailure {
  return new WorkFailure("branch_is_default", "the branch is the remote's default branch: name another one");
}

/** Returns the failure of a push. */
export function pushFailure(args: readonly string[], result: GitResult, call: GitCall): WorkFailure {
  const line = result.stdout.split("\n").find((line) => line.startsWith("!")) ?? "";
  if (line.includes("[rejected]")) {
    return new WorkFailure(
      "branch_moved",
      "the remote's branch has changed during the push: try again",
      true,
    );
  }
  const failure = gitFailureOf(args, result, call);
  return line.includes("[remote rejected]")
    ? new WorkFailure("push_refused", `the remote takes no such push: ${failure.message}`)
    : failure;
}
