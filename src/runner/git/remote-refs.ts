import { createHash } from "node:crypto";
import { branchNameProblem } from "../../domain/source/git-branch-name.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { accessToSibling, type RemoteAccess } from "./git-access.ts";
import { type GitCall, gitBytes } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/**
 * The object of each branch and tag of a remote by the full name, such as
 * `refs/heads/main`. Names are bytes to git, and are read as Latin-1 here.
 */
export type Refs = ReadonlyMap<string, string>;

/** The branches and tags of a remote. */
export interface RemoteRefs {
  readonly refs: Refs;
  /** The commit of its HEAD; absent when it has none. */
  readonly headCommit?: string;
  /** The branch of its HEAD; absent when that is no branch. */
  readonly defaultBranch?: string;
}

/** Returns the name of a branch or tag in {@link Refs}. */
export function refNameOf(kind: "heads" | "tags", name: string): string {
  return `refs/${kind}/${Buffer.from(name).toString("latin1")}`;
}

/** The refs under which a repository keeps the branches of its remote. */
const LOCAL_BRANCHES = "refs/remotes/origin/";
const BRANCHES = "refs/heads/";
const TAGS = "refs/tags/";

/** The refs that are fetched of a remote: all branches and tags. */
export const BRANCHES_AND_TAGS = [`+${BRANCHES}*:${LOCAL_BRANCHES}*`, `+${TAGS}*:${TAGS}*`];

/**
 * Asks a remote for its branches and tags. GitLab answers only at `.git` and
 * redirects every other address there.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when that ended it
 */
export async function listRemoteRefs(
  tools: GitTools,
  access: RemoteAccess,
  signal: AbortSignal | undefined,
): Promise<{ readonly reached: RemoteAccess; readonly remote: RemoteRefs }> {
  const patterns = [`${BRANCHES}*`, `${TAGS}*`];
  const { reached, text } = await askRemote(tools, access, patterns, { signal });
  return { reached, remote: { ...parseHead(text), refs: parseRefs(text, "\t", BRANCHES) } };
}

/**
 * Most bytes of the answer about single refs. The remote decides how long that is: it names every ref whose name ends
 * with a wanted one.
 */
export const MAX_NAMED_BYTES = 1_024 * 1_024;

/** The refs that a remote has of those that it was asked for. */
export interface NamedRefs extends Omit<RemoteRefs, "refs"> {
  /** The commit of each ref by its full name; of a tag's object the commit that it leads to. */
  readonly commits: Refs;
}

/**
 * Asks a remote for single refs.
 *
 * @param names full names, such as `refs/heads/main`, as in {@link Refs}
 * @throws as {@link listRemoteRefs}
 */
export async function findRemoteRefs(
  tools: GitTools,
  access: RemoteAccess,
  names: readonly string[],
  signal: AbortSignal | undefined,
): Promise<{ readonly reached: RemoteAccess; readonly remote: NamedRefs }> {
  const safe = names.filter((name) => branchNameProblem(name) === undefined);
  // The object of a tag, and behind it what the tag leads to, are two lines.
  const patterns = safe.flatMap((name) => (name.startsWith(TAGS) ? [name, `${name}^{}`] : [name]));
  const bytes = patterns.map((name) => Buffer.from(name, "latin1").toString());
  const { reached, text } = await askRemote(tools, access, bytes, { signal, maxBytes: MAX_NAMED_BYTES });
  const commits = new Map<string, string>();
  const wanted = new Set(safe);
  for (const line of text.split("\n")) {
    const [id = "", found = ""] = line.split("\t");
    const name = found.replace(/\^\{\}$/, "");
    if (OBJECT_ID.test(id) && wanted.has(name) && (name !== found || !commits.has(name)))
      commits.set(name, id);
  }
  return { reached, remote: { ...parseHead(text), commits } };
}

/** Asks a remote for its HEAD and the refs of patterns, at the address under which it answers. */
async function askRemote(
  tools: GitTools,
  access: RemoteAccess,
  patterns: readonly string[],
  call: Pick<GitCall, "signal" | "maxBytes">,
): Promise<{ readonly reached: RemoteAccess; readonly text: string }> {
  const askAt = async (reached: RemoteAccess) => {
    const args = ["ls-remote", "--symref", "--", reached.remote.address, "HEAD", ...patterns];
    return { reached, text: (await gitBytes(tools, args, { ...call, access: reached })).toString("latin1") };
  };
  try {
    return await askAt(access);
  } catch (error) {
    const { address } = access.remote;
    const isMoved = error instanceof WorkFailure && error.reason === "remote_moved";
    if (!isMoved || /\.git\/?$|[?]/.test(address)) throw error;
    return askAt(accessToSibling(access, `${address.replace(/\/+$/, "")}.git`));
  }
}

function parseHead(text: string): Pick<RemoteRefs, "headCommit" | "defaultBranch"> {
  const defaultBranch = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(text)?.[1];
  const headCommit = /^([0-9a-f]+)\tHEAD$/m.exec(text)?.[1];
  return {
    ...(headCommit && { headCommit }),
    ...(defaultBranch && { defaultBranch: Buffer.from(defaultBranch, "latin1").toString() }),
  };
}

/** Returns the branches and tags of the remote that a repository has. */
export async function readFetchedRefs(tools: GitTools, call: GitCall): Promise<Refs> {
  const args = ["for-each-ref", "--format=%(objectname) %(refname)", LOCAL_BRANCHES, TAGS];
  return parsePackedRefs((await gitBytes(tools, args, call)).toString("latin1"));
}

/**
 * Returns the text of the file `packed-refs` in a repository that has fetched
 * these refs. Equal refs have equal texts.
 */
export function packedRefsOf(refs: Refs): string {
  const lines = [...refs].map(([name, id]) => [localName(name), id] as const);
  // Git searches the file by bytes.
  lines.sort(([a], [b]) => (a < b ? -1 : 1));
  return `# pack-refs with: sorted \n${lines.map(([name, id]) => `${id} ${name}\n`).join("")}`;
}

/** Parses what {@link packedRefsOf} returns; lines that it does not write are ignored. */
export function parsePackedRefs(text: string): Refs {
  return parseRefs(text, " ", LOCAL_BRANCHES);
}

/** Returns a short text that is equal for equal refs only. */
export function digestOfRefs(refs: Refs): string {
  return createHash("sha256").update(packedRefsOf(refs), "latin1").digest("hex");
}

function localName(name: string): string {
  return name.startsWith(BRANCHES) ? LOCAL_BRANCHES + name.slice(BRANCHES.length) : name;
}

/**
 * Parses lines of an object and a ref. As git does, ignores names that are none.
 *
 * @param branches the beginning of the names of branches in the text
 */
function parseRefs(text: string, separator: string, branches: string): Refs {
  const refs = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [id = "", name = ""] = line.split(separator);
    if (!OBJECT_ID.test(id) || branchNameProblem(name) !== undefined) continue;
    if (name.startsWith(branches)) refs.set(BRANCHES + name.slice(branches.length), id);
    else if (name.startsWith(TAGS)) refs.set(name, id);
  }
  return refs;
}

const OBJECT_ID = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
