import { realpathSync } from "node:fs";
import { relative } from "node:path";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { repositoryName } from "../../domain/source/remote.ts";
import type { TreeStamp } from "../changes/tree-stamp.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { type CredentialFor, resolveRemoteAccess } from "./git-access.ts";
import { type FetchContext, fetchInto } from "./git-fetch.ts";
import { gitFolderOf } from "./git-folder.ts";
import { writeSettings } from "./git-repository.ts";
import { type Source, sourcesOf } from "./git-source.ts";
import { checkOutRevision, resolveTarget } from "./git-target.ts";
import type { GitTools } from "./git-tools.ts";
import { parseRemote } from "./remote-address.ts";
import { resolveInside } from "./tree-path.ts";

/** A repository that was checked out in a workspace. */
export interface Checkout {
  /** The folder, relative to the workspace's tree; empty for the tree itself. */
  readonly location: string;
  /** The remote's address, without a secret. */
  readonly remoteUri: string;
  /** The commit that was checked out; absent when the repository has none. */
  readonly commit?: string;
  /** The branch that was checked out; absent when none was. */
  readonly branch?: string;
  /** The remote's default branch; absent when it names none. */
  readonly defaultBranch?: string;
  /** The digest of the remote's branches and tags; absent in records of earlier releases. */
  readonly refsDigest?: string;
  /** Absent when files may have changed since, as in the copy of a prebuild. */
  readonly stamp?: TreeStamp;
}

/** The target folder of a checkout, and the means to fetch the sources. */
export interface CheckoutContext extends FetchContext {
  /** The workspace's tree, a folder. */
  readonly tree: string;
  /** The repositories already in the tree when it is a copy of another one; none when absent. */
  readonly copied?: readonly Checkout[] | undefined;
  readonly credentialFor: CredentialFor;
}

/**
 * Checks out the sources of an initializer in order, each in its own folder. A repository that is already in the
 * folder, as in the copy of a prebuild, is updated: changed files are reset, untracked files stay. Submodules are not
 * fetched.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when it was aborted
 */
export async function checkOutSources(
  tools: GitTools,
  initializer: EnvironmentInitializer | undefined,
  place: CheckoutContext,
): Promise<readonly Checkout[]> {
  const checkouts: Checkout[] = [];
  for (const source of sourcesOf(initializer)) {
    const folder = folderOf(source, place.tree, checkouts);
    checkouts.push(await checkOut(tools, source, folder, place));
  }
  return checkouts;
}

async function checkOut(
  tools: GitTools,
  source: Source,
  folder: string,
  { tree, copied = [], credentialFor, ...context }: CheckoutContext,
): Promise<Checkout> {
  const { target, depth } = source;
  const location = relative(realpathSync(tree), folder);
  const upstream =
    source.upstreamUri === "" ? undefined : parseRemote(source.upstreamUri, tools.remotes).address;
  const access = await resolveRemoteAccess(tools, source.remoteUri, credentialFor);
  const copy = copied.find((each) => each.location === location && each.remoteUri === access.remote.address);
  const request = { access, target, depth, copiedRefsDigest: copy?.refsDigest };
  const fetched = await fetchInto(tools, folder, request, context);
  const { address: origin, isCopy, defaultBranch, refsDigest } = fetched;
  const call = { repository: { gitFolder: gitFolderOf(folder), tree: folder }, signal: context.signal };
  const revision = await resolveTarget(tools, call, fetched, target);
  const { commit, branch } = revision;
  const following = revision.isRemote ? branch : undefined;
  await writeSettings(tools, folder, { origin, upstream, following, isCopy });
  await checkOutRevision(tools, call, revision);
  return {
    location,
    remoteUri: origin,
    ...(commit !== undefined && { commit }),
    ...(branch !== undefined && { branch }),
    ...(defaultBranch !== undefined && { defaultBranch }),
    refsDigest,
  };
}

/**
 * Returns the folder of a source. Without a location it is the repository's name, with a number if that name is
 * taken.
 */
function folderOf({ remoteUri, location }: Source, tree: string, before: readonly Checkout[]): string {
  const taken = new Set(before.map((checkout) => resolveInside(tree, checkout.location)));
  if (location !== "") {
    const folder = resolveInside(tree, location);
    if (!taken.has(folder)) return folder;
    throw new WorkFailure(
      "path_refused",
      `two sources have the folder ${JSON.stringify(location)}: give each its own checkoutLocation`,
    );
  }
  const name = repositoryName(remoteUri) || "repository";
  let folder = resolveInside(tree, name);
  for (let number = 2; taken.has(folder); number++) folder = resolveInside(tree, `${name}-${number}`);
  return folder;
}
