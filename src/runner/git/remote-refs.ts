import { createHash } from "node:crypto";
import { branchNameProblem } from "../../domain/source/git-branch-name.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { accessToSibling, type RemoteAccess } from "./git-access.ts";
import { type GitCall, gitBytes } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/**
 * The object of each branch and tag of a remote, by full name such as `refs/heads/main`. Git's names are bytes; this
 * module reads them as Latin-1.
 */
export type Refs = ReadonlyMap<string, string>;

/** The branches and tags of a remote. */
export interface RemoteRefs {
  readonly refs: Refs;
  /** The commit of its HEAD; absent when it has none. */
  readonly headCommit?: string;
  /** The branch of its HEAD; absent when HEAD names no branch. */
  readonly defaultBranch?: string;
}

/** Returns the name of a branch or tag in {@link Refs}. */
export function refNameOf(kind: "heads" | "tags", name: string): string {
  return `refs/${kind}/${Buffer.from(name).toString("latin1")}`;
}

/** The refs that hold the branches of a repository's remote. */
const LOCAL_BRANCHES = "refs/remotes/origin/";
const BRANCHES = "refs/heads/";
const TAGS = "refs/tags/";

/** The refspecs of all branches and tags of a remote. */
export const BRANCHES_AND_TAGS = [`+${BRANCHES}*:${LOCAL_BRANCHES}*`, `+${TAGS}*:${TAGS}*`];

/**
 * Asks a remote for its branches and tags. GitLab answers only at `.git` and redirects other addresses there.
 *
 * @throws WorkFailure
 * @throws the reason of `signal` when it was aborted
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
 * Maximum bytes of an answer about single refs. The remote controls its length: it lists every ref whose name ends
 * with a requested one.
 */
export const MAX_NAMED_BYTES = 1_024 * 1_024;

/** The requested refs that a remote has. */
export interface NamedRefs extends Omit<RemoteRefs, "refs"> {
  /** The commit of each ref by full name; tag objects are peeled to their commit. */
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
  // The tag object and the commit it points to are two lines.
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

/** Asks a remote for its HEAD and the refs that match patterns, at the address where it answers. */
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

/** Returns the branches and tags of the remote that were fetched into a repository. */
export async function readFetchedRefs(tools: GitTools, call: GitCall): Promise<Refs> {
  const args = ["for-each-ref", "--format=%(objectname) %(refname)", LOCAL_BRANCHES, TAGS];
  return parsePackedRefs((await gitBytes(tools, args, call)).toString("latin1"));
}

/** Returns the text of `packed-refs` for a repository that has fetched these refs. Equal refs give equal texts. */
export function packedRefsOf(refs: Refs): string {
  const lines = [...refs].map(([name, id]) => [localName(name), id] as const);
  // Git compares bytes when it searches the file.
  lines.sort(([a], [b]) => (a < b ? -1 : 1));
  return `# pack-refs with: sorted \n${lines.map(([name, id]) => `${id} ${name}\n`).join("")}`;
}

/** Parses the result of {@link packedRefsOf}; ignores all other lines. */
export function parsePackedRefs(text: string): Refs {
  return parseRefs(text, " ", LOCAL_BRANCHES);
}

/** Returns a digest that is equal only for equal refs. */
export function digestOfRefs(refs: Refs): string {
  return createHash("sha256").update(packedRefsOf(refs), "latin1").digest("hex");
}

function localName(name: string): string {
  return name.startsWith(BRANCHES) ? LOCAL_BRANCHES + name.slice(BRANCHES.length) : name;
}

/**
 * Parses lines of an object and a ref. Like git, ignores invalid names.
 *
 * @param branches the prefix of branch names in the text
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
