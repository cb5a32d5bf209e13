import type { Target } from "../../domain/source/context-url.ts";
import { fetchThroughCache } from "../cache/fetch-through-cache.ts";
import type { RepositoryCache } from "../cache/repository-cache.ts";
import type { RemoteAccess } from "./git-access.ts";
import { gitFolderOf, isFolder } from "./git-folder.ts";
import { initRepository } from "./git-repository.ts";
import { type GitCall, type GitRepository, git, tryGit } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";
import {
  BRANCHES_AND_TAGS,
  digestOfRefs,
  listRemoteRefs,
  type Refs,
  type RemoteRefs,
  readFetchedRefs,
  refNameOf,
} from "./remote-refs.ts";

/** The facts about a remote whose refs were fetched. */
export interface Fetched extends RemoteRefs {
  /** The address under which it answered. */
  readonly address: string;
  /** True if the repository was there before. */
  readonly isCopy: boolean;
  /** The digest of the remote's branches and tags, fetched or not. */
  readonly refsDigest: string;
}

export interface FetchRequest {
  readonly access: RemoteAccess;
  readonly target: Target;
  /** The number of commits of the history; 0 for all. */
  readonly depth: number;
  /** `refsDigest` of the repository in the folder, where that is the copy of one that was fetched. */
  readonly copiedRefsDigest?: string | undefined;
}

/** The means of a fetch. */
export interface FetchContext {
  /** The repositories that were fetched before; none when absent. */
  readonly cache?: RepositoryCache | undefined;
  /** Receives lines of git's progress. */
  readonly onProgress?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The local ref for a fetched ref that is neither branch nor tag. */
export const FETCHED_REF = "refs/chartroom/fetched";

/** A fetch under way, after the remote has named its refs. */
interface Fetch {
  readonly tools: GitTools;
  readonly call: GitCall & { readonly repository: GitRepository };
  readonly reached: RemoteAccess;
  readonly remote: RemoteRefs;
  /** Fetches by refspecs; only so many commits of their histories, where `depth` is not 0. */
  readonly fetch: (refspecs: readonly string[], more?: FetchOptions) => Promise<void>;
}

interface FetchOptions {
  readonly depth?: number;
  readonly settings?: readonly string[];
}

/**
 * Fetches all branches and tags of a remote into the folder's repository, which
 * is created when there is none, and whatever else a target needs; with a depth,
 * only what the target needs. The remote is asked before anything is taken from
 * the cache.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when that ended it
 */
export async function fetchInto(
  tools: GitTools,
  folder: string,
  { access, target, depth, copiedRefsDigest }: FetchRequest,
  { cache, onProgress, signal }: FetchContext,
): Promise<Fetched> {
  const { reached, remote } = await listRemoteRefs(tools, access, signal);
  const gitFolder = gitFolderOf(folder);
  const isCopy = await isFolder(gitFolder);
  await initRepository(folder, remote.defaultBranch ?? "main");
  const call = { repository: { gitFolder, tree: folder }, signal };
  const run: Fetch = {
    tools,
    call,
    reached,
    remote,
    async fetch(refspecs, { depth = 0, settings = [] } = {}) {
      if (refspecs.length === 0) return;
      const options = ["--progress", "--prune", "--no-tags", "--no-write-fetch-head"];
      if (depth > 0) options.push(`--depth=${depth}`);
      const { address } = reached.remote;
      const before = settings.flatMap((setting) => ["-c", setting]);
      const args = [...before, "fetch", ...options, "--", address, ...refspecs];
      await git(tools, args, { ...call, access: reached, onProgress });
    },
  };
  const isShallow = depth > 0 && isNamed(target);
  const isCurrent = digestOfRefs(remote.refs) === copiedRefsDigest;
  let { refs } = remote;
  if (isShallow) {
    if (!isCurrent) await run.fetch(refspecsFor(target, remote), { depth });
    refs = await readFetchedRefs(tools, call);
  } else if (!isCurrent) refs = await fetchAll(run, isCopy ? undefined : cache);
  await fetchBeyond(run, target, isShallow ? depth : 0);
  const headCommit = refs.get(refNameOf("heads", remote.defaultBranch ?? "")) ?? remote.headCommit;
  return {
    address: reached.remote.address,
    isCopy,
    refsDigest: digestOfRefs(isShallow ? remote.refs : refs),
    ...remote,
    refs,
    ...(headCommit !== undefined && { headCommit }),
  };
}

async function fetchAll(
  { tools, call, reached, remote, fetch }: Fetch,
  cache: RepositoryCache | undefined,
): Promise<Refs> {
  const { address, user } = reached.remote;
  const { credential } = reached;
  if (!cache || credential === undefined || remote.refs.size === 0) {
    await fetch(BRANCHES_AND_TAGS);
    return readFetchedRefs(tools, call);
  }
  return cache.use({ address, user, credential }, (cached) =>
    fetchThroughCache({
      tools,
      call,
      refs: remote.refs,
      cached,
      fetch: (settings) => fetch(BRANCHES_AND_TAGS, { settings }),
    }),
  );
}

/** Fetches what a target needs in addition to branches and tags. */
async function fetchBeyond(
  { tools, call, remote, fetch }: Fetch,
  target: Target,
  depth: number,
): Promise<void> {
  if (target.kind === "ref") await fetch([`+${target.ref}:${FETCHED_REF}`], { depth });
  if (target.kind !== "commit" || !isWholeHash(target.hash)) return;
  const hash = target.hash.toLowerCase();
  if (depth === 0 && [...remote.refs.values()].includes(hash)) return;
  const there = await tryGit(tools, ["cat-file", "-e", `${hash}^{commit}`], call);
  // Remotes hand out a commit that no branch contains any more only for its complete hash.
  if (there.exit !== 0) await fetch([`+${hash}:${FETCHED_REF}`], { depth });
}

/** Returns whether a target names where its history begins, so that it can be fetched alone. */
function isNamed(target: Target): boolean {
  return target.kind === "commit" ? isWholeHash(target.hash) : target.kind !== "path";
}

/** Returns what is fetched of the branches and tags for a target alone. */
function refspecsFor(target: Target, { refs, defaultBranch, headCommit }: RemoteRefs): readonly string[] {
  const branch = (name: string) =>
    refs.has(refNameOf("heads", name)) ? [`+refs/heads/${name}:refs/remotes/origin/${name}`] : [];
  switch (target.kind) {
    case "branch":
      return branch(target.name);
    case "tag":
      return refs.has(refNameOf("tags", target.name))
        ? [`+refs/tags/${target.name}:refs/tags/${target.name}`]
        : [];
    case "head":
    case "local-branch":
      if (defaultBranch !== undefined) return branch(defaultBranch);
      return headCommit === undefined ? [] : [`+${headCommit}:${FETCHED_REF}`];
    default:
      return [];
  }
}

function isWholeHash(text: string): boolean {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(text);
}
