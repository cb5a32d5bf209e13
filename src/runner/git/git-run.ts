import { dirname } from "node:path";
import { cleanEnvironment } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { RemoteAccess } from "./git-access.ts";
import { gitFailure } from "./git-failure.ts";
import type { GitTools } from "./git-tools.ts";

/** A repository whose settings are the runner's own. Git gets both paths and looks for neither. */
export interface GitRepository {
  /** The git directory. Nothing in it but objects, refs and the index may come from commands. */
  readonly gitFolder: string;
  /** The working tree; absent for a bare repository. */
  readonly tree?: string;
}

export interface GitCall {
  /** What git works on; absent for a command that needs no repository. */
  readonly repository?: GitRepository | undefined;
  /** The remote that it may reach; none when absent. */
  readonly access?: RemoteAccess;
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal | undefined;
}

export interface GitAnswer {
  /** Null when a signal ended git. */
  readonly exit: number | null;
  readonly stdout: string;
  /** In the C locale; may hold a secret of the access. */
  readonly stderr: string;
}

/**
 * Added to every call, so that git runs no hook, asks nobody and leaves nothing
 * running. Drivers (filter, diff, merge, textconv) cannot be switched off by
 * name: that none is there follows from where the settings are read, which is
 * only from a git directory that the runner wrote.
 */
const SETTINGS: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "credential.helper=",
  "commit.gpgSign=false",
  "log.showSignature=false",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "push.recurseSubmodules=no",
  "gc.auto=0",
  "maintenance.auto=false",
  "advice.detachedHead=false",
  // Where a redirect leads, nothing was checked.
  "http.followRedirects=false",
  // Bytes in a second, and seconds: a server that falls silent holds nobody for an hour.
  "http.lowSpeedLimit=1",
  "http.lowSpeedTime=120",
];

/** More than any answer that is read here. */
const ANSWER_BYTES = 16 * 1_024 * 1_024;
const COMPLAINT_BYTES = 64 * 1_024;

/**
 * Runs git and answers what it wrote.
 *
 * @throws WorkFailure for what git says of a failure, git_timed_out
 * @throws the reason of `signal` when that ended it
 */
export async function git(tools: GitTools, args: readonly string[], call: GitCall): Promise<string> {
  const answer = await tryGit(tools, args, call);
  if (answer.exit !== 0) throw gitFailureOf(args, answer, call);
  return answer.stdout;
}

/** The same, for a command whose failure is an answer. */
export async function tryGit(tools: GitTools, args: readonly string[], call: GitCall): Promise<GitAnswer> {
  const answer = await runGit(tools, args, call);
  return { ...answer, stdout: answer.stdout.toString() };
}

/** The same as {@link git}, for output that need not be UTF-8, such as paths. */
export async function gitBytes(tools: GitTools, args: readonly string[], call: GitCall): Promise<Buffer> {
  const { stdout, ...answer } = await runGit(tools, args, call);
  if (answer.exit !== 0) throw gitFailureOf(args, { ...answer, stdout: "" }, call);
  return stdout;
}

type RawAnswer = Omit<GitAnswer, "stdout"> & { readonly stdout: Buffer };

async function runGit(tools: GitTools, args: readonly string[], call: GitCall): Promise<RawAnswer> {
  const { programs, timeoutMs } = tools;
  const settings = [...SETTINGS, ...(call.access?.settings ?? [])];
  let complaints = Buffer.alloc(0);
  const result = await programs.run({
    program: "git",
    args: [...settings.flatMap((setting) => ["-c", setting]), ...args],
    folder: folderOf(tools, call),
    environment: environmentOf(tools, call),
    ...(call.input !== undefined && { input: Buffer.from(call.input) }),
    timeoutMs,
    keepBytes: ANSWER_BYTES,
    signal: call.signal,
    onOutput: (bytes, stream) => {
      if (stream === "stderr") complaints = Buffer.concat([complaints, bytes]).subarray(0, COMPLAINT_BYTES);
    },
  });
  if (result.stopped) call.signal?.throwIfAborted();
  if (result.timedOut) {
    throw new WorkFailure("git_timed_out", `git ${commandOf(args)} took longer than ${timeoutMs} ms`, true);
  }
  if (result.outputTruncated) {
    throw new WorkFailure("git_failed", `git ${commandOf(args)} answered more than ${ANSWER_BYTES} bytes`);
  }
  return {
    exit: result.exit,
    stdout: result.stdout,
    stderr: wholeLines(complaints),
  };
}

/** Without a line that was cut: half a secret could stand in it, which is not recognised. */
function wholeLines(complaints: Buffer): string {
  const text = complaints.toString();
  return complaints.length < COMPLAINT_BYTES ? text : text.slice(0, text.lastIndexOf("\n") + 1);
}

/** The failure that an answer is. */
export function gitFailureOf(
  args: readonly string[],
  { stderr }: GitAnswer,
  { access }: GitCall,
): WorkFailure {
  const failure = gitFailure(commandOf(args), stderr, access?.secrets ?? []);
  if (access?.withheld === undefined) return failure;
  if (failure.reason === "git_unauthorized") return new WorkFailure("credential_withheld", access.withheld);
  // Some hosts say so of what they hide from strangers.
  if (failure.reason !== "repository_not_found") return failure;
  return new WorkFailure(failure.reason, `${failure.message}. No credential was sent: ${access.withheld}`);
}

function commandOf(args: readonly string[]): string {
  return args.find((arg) => !arg.startsWith("-")) ?? "";
}

function folderOf(tools: GitTools, { repository }: GitCall): string {
  return repository?.tree ?? repository?.gitFolder ?? tools.home;
}

function environmentOf(tools: GitTools, call: GitCall): Record<string, string> {
  const { repository, access, environment } = call;
  return cleanEnvironment(tools.programs, tools.home, {
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    // Named, never looked for: what a command puts into a folder, or above it, is no repository of the runner.
    GIT_DIR: repository?.gitFolder ?? "/dev/null",
    ...(repository?.tree !== undefined && { GIT_WORK_TREE: repository.tree }),
    GIT_CEILING_DIRECTORIES: dirname(folderOf(tools, call)),
    // A commit that a ref of the repository puts in the place of another is not what the remote has.
    GIT_NO_REPLACE_OBJECTS: "1",
    // Beats every protocol.*.allow of the repository; no remote helper is among them.
    GIT_ALLOW_PROTOCOL: access?.remote.scheme ?? "none",
    ...environment,
    ...access?.environment,
  });
}
