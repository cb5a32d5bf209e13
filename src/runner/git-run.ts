import { dirname } from "node:path";
import { cleanEnvironment } from "./command.ts";
import type { RemoteAccess } from "./git-access.ts";
import { gitFailure } from "./git-failure.ts";
import type { GitTools } from "./git-tools.ts";
import { WorkFailure } from "./work-failure.ts";

export interface GitCall {
  /** Where git runs: the top of a repository, or no part of any. */
  readonly folder: string;
  /** The remote that it may reach; none when absent. */
  readonly access?: RemoteAccess;
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
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
 * Beats what the repository's own settings say, so that git runs no program of
 * their choice, asks nobody and leaves nothing running.
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
  if (answer.exit !== 0) throw failureOf(args, answer, call);
  return answer.stdout;
}

/** The same, for a command whose failure is an answer. */
export async function tryGit(tools: GitTools, args: readonly string[], call: GitCall): Promise<GitAnswer> {
  const { programs, timeoutMs } = tools;
  const settings = [...SETTINGS, ...(call.access?.settings ?? [])];
  let complaints = Buffer.alloc(0);
  const result = await programs.run({
    program: "git",
    args: [...settings.flatMap((setting) => ["-c", setting]), ...args],
    folder: call.folder,
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
    stdout: result.stdout.toString(),
    stderr: wholeLines(complaints),
  };
}

/** Without a line that was cut: half a secret could stand in it, which is not recognised. */
function wholeLines(complaints: Buffer): string {
  const text = complaints.toString();
  return complaints.length < COMPLAINT_BYTES ? text : text.slice(0, text.lastIndexOf("\n") + 1);
}

/** The failure that an answer is. */
export function failureOf(args: readonly string[], { stderr }: GitAnswer, { access }: GitCall): WorkFailure {
  const failure = gitFailure(commandOf(args), stderr, access?.secrets ?? []);
  if (!access?.withheld || failure.reason !== "git_unauthorized") return failure;
  return new WorkFailure(
    "credential_withheld",
    `${access.remote.host} wants a credential, and none is sent over plain http: use its https address, ` +
      "or have the runner's operator name it in --plain-http-hosts",
  );
}

function commandOf(args: readonly string[]): string {
  return args.find((arg) => !arg.startsWith("-")) ?? "";
}

function environmentOf(tools: GitTools, { folder, access, environment }: GitCall): Record<string, string> {
  return cleanEnvironment(tools.programs, tools.home, {
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    // The repository is in the folder itself, or there is none: never one that the folder is part of.
    GIT_CEILING_DIRECTORIES: dirname(folder),
    // Beats every protocol.*.allow of the repository; no remote helper is among them.
    GIT_ALLOW_PROTOCOL: access?.remote.scheme ?? "none",
    ...environment,
    ...access?.environment,
  });
}
