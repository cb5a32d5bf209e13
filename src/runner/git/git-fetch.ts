import { mkdir } from "node:fs/promises";
import type { Target } from "../../domain/source/context-url.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { accessToSibling, type RemoteAccess } from "./git-access.ts";
import { gitFolderOf, keepOnlyData } from "./git-folder.ts";
import { type GitCall, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/** What is known of a remote whose branches and tags were fetched. */
export interface Fetched {
  /** Under which it answered. */
  readonly address: string;
  /** Of its HEAD; absent when it has none. */
  readonly headCommit?: string;
  /** Absent when its HEAD is no branch. */
  readonly defaultBranch?: string;
}

const BRANCHES_AND_TAGS = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];

/** Where a ref that is neither branch nor tag is fetched to. */
export const FETCHED_REF = "refs/chartroom/fetched";

/**
 * Fetches all branches and tags of a remote into the folder's repository, which
 * is made when there is none, and what a target needs beside them.
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
  await prepare(tools, folder, head.defaultBranch ?? "main", call);
  await git(tools, ["remote", "add", "--", "origin", address], call);
  const fetch = (refs: readonly string[]) =>
    git(tools, ["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", "origin", ...refs], {
      ...call,
      access: reached,
    });
  await fetch([...BRANCHES_AND_TAGS, ...(target.kind === "ref" ? [`+${target.ref}:${FETCHED_REF}`] : [])]);
  // A commit that no branch holds any more is given out by its whole hash only.
  if (target.kind === "commit" && isWholeHash(target.hash)) {
    const there = await tryGit(tools, ["cat-file", "-e", `${target.hash}^{commit}`], call);
    if (there.exit !== 0) await fetch([`+${target.hash}:${FETCHED_REF}`]);
  }
  return { address, ...head };
}

/** What the remote's HEAD is. GitLab answers only at `.git` and sends everybody else there. */
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
 * Makes the folder a repository without remotes. One that is there already comes
 * from a prebuild, whose commands could set whatever they liked: none of its
 * settings is to hold when a credential is near.
 */
async function prepare(tools: GitTools, folder: string, branch: string, call: GitCall): Promise<void> {
  await mkdir(folder, { recursive: true });
  await keepOnlyData(gitFolderOf(folder));
  await git(tools, ["init", "--quiet", "--template=", `--initial-branch=${branch}`], call);
}

function isWholeHash(text: string): boolean {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(text);
}
