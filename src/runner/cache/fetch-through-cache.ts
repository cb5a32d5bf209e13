import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type GitCall, type GitRepository, git } from "../git/git-run.ts";
import type { GitTools } from "../git/git-tools.ts";
import { packedRefsOf, parsePackedRefs, type Refs, readFetchedRefs } from "../git/remote-refs.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { CachedRepository, CachedState } from "./cached-repository.ts";

/** A fetch of all branches and tags into a new repository without objects. */
export interface CachedFetch {
  readonly tools: GitTools;
  readonly call: GitCall & { readonly repository: GitRepository };
  /** The branches and tags of the remote, as it named them to the credential of this work. */
  readonly refs: Refs;
  readonly cached: CachedRepository;
  /** Fetches from the remote all that it has and the repository lacks. */
  readonly fetch: (settings: readonly string[]) => Promise<void>;
}

const SETTINGS = [
  // Git compares each object with its hash in any case; this adds the rules for contents.
  "fetch.fsckObjects=true",
  // Whatever its size, what is new is a pack.
  "fetch.unpackLimit=1",
  // A log would keep alive what only earlier refs reached.
  "core.logAllRefUpdates=false",
];

/** More packs than this are joined. */
const MAX_PACKS = 20;

/**
 * Brings the branches and tags of a remote into a repository, as far as possible
 * from the cache. The repository then has what the remote's refs reach now and
 * nothing else, and so has the cache.
 *
 * @returns the refs that the repository has; the remote may have moved meanwhile
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
    // Names of other refs are none that this program has written.
    if (packedRefsOf(parsePackedRefs(state.refs)) !== state.refs) throw new Error("the refs are damaged");
    await writeRefs(run, parsePackedRefs(state.refs));
    await git(run.tools, ["fsck", "--full", "--no-dangling", "--no-progress"], run.call);
  };
  return run.cached.copyTo(packsOf(run), state, check, run.call.signal);
}

/** Fetches and checks what is new; returns false where git finds fault with the content of an object. */
async function fetchChecked({ cached, fetch }: CachedFetch): Promise<boolean> {
  try {
    if (!cached.isUnfit) await fetch(SETTINGS);
  } catch (error) {
    if (!(error instanceof WorkFailure && /\bfsck error\b/.test(error.message))) throw error;
    cached.isUnfit = true;
  }
  return !cached.isUnfit;
}

/** Fetches what only git's rules for contents speak against, as every clone without a cache does. */
async function fetchUnchecked(run: CachedFetch): Promise<Refs> {
  const { cached, call, tools, fetch } = run;
  await cached.remove();
  await rm(packsOf(run), { recursive: true, force: true });
  await mkdir(packsOf(run));
  await rm(join(call.repository.gitFolder, "packed-refs"));
  await fetch([]);
  return readFetchedRefs(tools, call);
}

/**
 * Removes the objects that only earlier refs of the remote reached, and joins
 * packs where there are many.
 */
async function repack(run: CachedFetch, before: Refs, now: Refs): Promise<void> {
  const { tools, call } = run;
  const named = new Set(now.values());
  const lost = [...before.values()].filter((id) => !named.has(id));
  const input = lost.map((id) => `${id}\n`).join("");
  // The first object is enough to know that there is one.
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
