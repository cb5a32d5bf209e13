import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type GitCall, type GitRepository, git } from "../git/git-run.ts";
import type { GitTools } from "../git/git-tools.ts";
import { packedRefsOf, parsePackedRefs, type Refs, readFetchedRefs } from "../git/remote-refs.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { CachedRepository, CachedState } from "./cached-repository.ts";

/** A fetch of all branches and tags into a new, empty repository. */
export interface CachedFetch {
  readonly tools: GitTools;
  readonly call: GitCall & { readonly repository: GitRepository };
  /** The branches and tags that the remote lists for this work's credential. */
  readonly refs: Refs;
  readonly cached: CachedRepository;
  /** Fetches everything that the repository lacks from the remote. */
  readonly fetch: (settings: readonly string[]) => Promise<void>;
}

const SETTINGS = [
  // Git always verifies the hash of each object; this setting also checks the objects' format.
  "fetch.fsckObjects=true",
  // Store every fetch as a pack, whatever its size.
  "fetch.unpackLimit=1",
  // A reflog would keep objects reachable that only old refs reached.
  "core.logAllRefUpdates=false",
];

/** Number of packs above which packs are joined. */
const MAX_PACKS = 20;

/**
 * Fetches a remote's branches and tags into a repository, from the cache as far as possible. Afterwards the repository
 * and the cache contain exactly the objects that the remote's current refs reach.
 *
 * @returns the refs of the repository; they may be newer than `run.refs` if the remote has moved
 * @throws what `fetch` throws
 */
export async function fetchThroughCache(run: CachedFetch): Promise<Refs> {
  const { cached, refs, call } = run;
  const { state } = cached;
  if (state?.isChecked && state.refs === packedRefsOf(refs) && (await copyFromCache(run, state))) {
    await writeRefs(run, refs);
    return refs;
  }
  return cached.exclusively(call.signal, () => updateCache(run));
}

async function updateCache(run: CachedFetch): Promise<Refs> {
  const { cached, refs } = run;
  const { state } = cached;
  const before = state && (await copyFromCache(run, state)) ? parsePackedRefs(state.refs) : new Map();
  const known = new Set(before.values());
  let now = refs;
  if ([...refs.values()].every((id) => known.has(id))) await writeRefs(run, refs);
  else {
    await writeRefs(run, before);
    if (!(await fetchChecked(run))) return fetchUnchecked(run);
    now = await readFetchedRefs(run.tools, run.call);
  }
  const text = packedRefsOf(now);
  if (text === cached.state?.refs) return now;
  await repack(run, before, now);
  await cached.replace(text, packsOf(run));
  return now;
}

function copyFromCache(run: CachedFetch, state: CachedState): Promise<boolean> {
  const check = async () => {
    // This program only writes refs that survive the round trip.
    if (packedRefsOf(parsePackedRefs(state.refs)) !== state.refs) throw new Error("the refs are damaged");
    await writeRefs(run, parsePackedRefs(state.refs));
    await git(run.tools, ["fsck", "--full", "--no-dangling", "--no-progress"], run.call);
  };
  return run.cached.copyTo(packsOf(run), state, check, run.call.signal);
}

/** Fetches and checks new objects. Returns false when git rejects the content of an object. */
async function fetchChecked({ cached, fetch }: CachedFetch): Promise<boolean> {
  try {
    if (!cached.isUnfit) await fetch(SETTINGS);
  } catch (error) {
    if (!(error instanceof WorkFailure && /\bfsck error\b/.test(error.message))) throw error;
    cached.isUnfit = true;
  }
  return !cached.isUnfit;
}

/** Fetches without the format checks, as a clone without a cache does, and empties the cache. */
async function fetchUnchecked(run: CachedFetch): Promise<Refs> {
  const { cached, call, tools, fetch } = run;
  await cached.remove();
  await rm(packsOf(run), { recursive: true, force: true });
  await mkdir(packsOf(run));
  await rm(join(call.repository.gitFolder, "packed-refs"));
  await fetch([]);
  return readFetchedRefs(tools, call);
}

/** Removes objects that only old refs of the remote reached, and joins packs when there are too many. */
async function repack(run: CachedFetch, before: Refs, now: Refs): Promise<void> {
  const { tools, call } = run;
  const named = new Set(now.values());
  const lost = [...before.values()].filter((id) => !named.has(id));
  const input = lost.map((id) => `${id}\n`).join("");
  // One object is enough to know that there are unreachable ones.
  const args = ["rev-list", "--objects", "--max-count=1", "--stdin", "--not", "--all"];
  if (input !== "" && (await git(tools, args, { ...call, input })) !== "") {
    await git(tools, ["repack", "-a", "-d", "-n", "--quiet"], call);
  } else if ((await readdir(packsOf(run))).filter((name) => name.endsWith(".pack")).length > MAX_PACKS) {
    await git(tools, ["repack", "--geometric=2", "-d", "-n", "--quiet"], call);
  }
}

async function writeRefs({ call }: CachedFetch, refs: Refs): Promise<void> {
  await writeFile(join(call.repository.gitFolder, "packed-refs"), packedRefsOf(refs), "latin1");
}

function packsOf({ call }: CachedFetch): string {
  return join(call.repository.gitFolder, "objects/pack");
}
