import { mkdir } from "node:fs/promises";
import type { Target } from "../../domain/source/context-url.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { accessToSibling, type RemoteAccess } from "./git-access.ts";
import { gitFolderOf, removeAllButData } from "./git-folder.ts";
import { type GitCall, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/** The facts about a remote whose branches and tags were fetched. */
export interface Fetched {
  /** The address under which it answered. */
  readonly address: string;
  /** The commit of its HEAD; absent when it has none. */
  readonly headCommit?: string;
  /** The branch of its HEAD; absent when that is no branch. */
  readonly defaultBranch?: string;
}

const BRANCHES_AND_TAGS = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];

/** The local ref for a fetched ref that is neither branch nor tag. */
export const FETCHED_REF = "refs/chartroom/fetched";

/**
 * Fetches all branches and tags of a remote into the folder's repository, which
 * is created when there is none, and whatever else a target needs.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when that ended it
 */
export async function fetchInto(
  tools: GitTools,
  folder: string,
  access: RemoteAccess,
  target: Target,
  signal: AbortSignal | undefined,
): Promise<Fetched> {
  const { reached, head } = await findHead(tools, access, signal);
  const { address } = reached.remote;
  const call: GitCall = { repository: { gitFolder: gitFolderOf(folder), tree: folder }, signal };
  await initRepository(tools, folder, head.defaultBranch ?? "main", call);
  await git(tools, ["remote", "add", "--", "origin", address], call);
  const fetch = (refs: readonly string[]) =>
    git(tools, ["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", "origin", ...refs], {
      ...call,
      access: reached,
    });
  await fetch([...BRANCHES_AND_TAGS, ...(target.kind === "ref" ? [`+${target.ref}:${FETCHED_REF}`] : [])]);
  // Remotes hand out a commit that no branch contains any more only for its complete hash.
  if (target.kind === "commit" && isWholeHash(target.hash)) {
    const there = await tryGit(tools, ["cat-file", "-e", `${target.hash}^{commit}`], call);
    if (there.exit !== 0) await fetch([`+${target.hash}:${FETCHED_REF}`]);
  }
  return { address, ...head };
}

/** Reads the remote's HEAD. GitLab answers only at `.git` and redirects every other address there. */
async function findHead(tools: GitTools, access: RemoteAccess, signal: AbortSignal | undefined) {
  try {
    return { reached: access, head: await remoteHead(tools, access, signal) };
  } catch (error) {
    const { address } = access.remote;
    const isMoved = error instanceof WorkFailure && error.reason === "remote_moved";
    if (!isMoved || /\.git\/?$|[?]/.test(address)) throw error;
    const reached = accessToSibling(access, `${address.replace(/\/+$/, "")}.git`);
    return { reached, head: await remoteHead(tools, reached, signal) };
  }
}

async function remoteHead(
  tools: GitTools,
  access: RemoteAccess,
  signal: AbortSignal | undefined,
): Promise<Omit<Fetched, "address">> {
  const args = ["ls-remote", "--symref", "--", access.remote.address, "HEAD"];
  const text = await git(tools, args, { access, signal });
  const defaultBranch = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(text)?.[1];
  const headCommit = /^([0-9a-f]+)\tHEAD$/m.exec(text)?.[1];
  return { ...(headCommit && { headCommit }), ...(defaultBranch && { defaultBranch }) };
}

/**
 * Makes the folder a repository without remotes. An existing repository comes
 * from a prebuild, whose commands could set anything: none of its settings may
 * apply while a credential is in use.
 */
async function initRepository(tools: GitTools, folder: string, branch: string, call: GitCall): Promise<void> {
  await mkdir(folder, { recursive: true });
  await removeAllButData(gitFolderOf(folder));
  await git(tools, ["init", "--quiet", "--template=", `--initial-branch=${branch}`], call);
}

function isWholeHash(text: string): boolean {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(text);
}
