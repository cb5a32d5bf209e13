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

/** A remote after its refs were fetched. */
export interface Fetched extends RemoteRefs {
  /** The address at which the remote answered. */
  readonly address: string;
  /** True if the folder already had the repository. */
  readonly isCopy: boolean;
  /** The digest of all branches and tags of the remote, fetched or not. */
  readonly refsDigest: string;
}

export interface FetchRequest {
  readonly access: RemoteAccess;
  readonly target: Target;
  /** The number of commits of history; 0 for all. */
  readonly depth: number;
  /** `refsDigest` of the repository already in the folder, if that is a copy of a fetched one. */
  readonly copiedRefsDigest?: string | undefined;
}

/** The means of a fetch. */
export interface FetchContext {
  /** The cache of fetched repositories; none when absent. */
  readonly cache?: RepositoryCache | undefined;
  /** Receives lines of git's progress. */
  readonly onProgress?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The local ref that holds a fetched ref that is neither a branch nor a tag. */
export const FETCHED_REF = "refs/chartroom/fetched";

/** A fetch in progress, after the remote has listed its refs. */
interface Fetch {
  readonly tools: GitTools;
  readonly call: GitCall & { readonly repository: GitRepository };
  readonly reached: RemoteAccess;
  readonly remote: RemoteRefs;
  /** Fetches the refspecs, with at most `depth` commits of history unless `depth` is 0. */
  readonly fetch: (refspecs: readonly string[], more?: FetchOptions) => Promise<void>;
}

interface FetchOptions {
  readonly depth?: number;
  readonly settings?: readonly string[];
}

/**
 * Fetches all branches and tags of a remote, and anything else the target needs, into the folder's repository.
 * Creates the repository if there is none. With a depth, fetches only what the target needs. Contacts the remote
 * before it uses the cache.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when it was aborted
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
  // Remotes serve a commit that is on no branch only by its full hash.
  if (there.exit !== 0) await fetch([`+${hash}:${FETCHED_REF}`], { depth });
}

/** Returns whether a target names the tip of its history, which can then be fetched alone. */
function isNamed(target: Target): boolean {
  return target.kind === "commit" ? isWholeHash(target.hash) : target.kind !== "path";
}

/** Returns the refspecs of the branches and tags to fetch for a target alone. */
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
