import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import type { RunGitApart } from "../isolation/isolation.ts";
import { type Command, commandEnvironment, type RunCommand } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { connectSsh, replyToPrompts } from "./apart/git-channel.ts";
import type { RemoteAccess } from "./git-access.ts";
import { GitComplaints } from "./git-complaints.ts";
import { gitFailure } from "./git-failure.ts";
import type { GitTools } from "./git-tools.ts";

/** A repository whose settings the runner controls. Git gets both paths explicitly and searches for neither. */
export interface GitRepository {
  /** The git directory. Nothing in it except objects, refs and the index may come from commands. */
  readonly gitFolder: string;
  /** The working tree; absent for a bare repository. */
  readonly tree?: string;
}

export interface GitCall {
  /** The repository that git works on; absent for a command that needs none. */
  readonly repository?: GitRepository | undefined;
  /** The remote that git may reach; none when absent. */
  readonly access?: RemoteAccess;
  readonly environment?: Readonly<Record<string, string>>;
  /** Files and folders outside the repository that git reads when it runs apart, such as borrowed objects. */
  readonly readable?: readonly string[];
  /**
   * True when git looks into a tree that may lead elsewhere: a repository in it may have a file or a link as its
   * `.git`. Git then sees nothing else, if the machine can run it apart.
   */
  readonly isApart?: boolean;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal | undefined;
  /** Maximum bytes of output to keep; drops the rest. When absent, output beyond `maxBytes` is a failure. */
  readonly keepBytes?: number;
  readonly maxBytes?: number;
  /** Receives each progress line that git prints with `--progress`. Progress lines are not part of `stderr`. */
  readonly onProgress?: ((line: string) => void) | undefined;
}

export interface GitResult {
  /** The exit code; null when a signal ended git. */
  readonly exit: number | null;
  readonly stdout: string;
  /** Standard error in the C locale; may contain a secret of the access. */
  readonly stderr: string;
}

/**
 * Settings of every call: git runs no hook, prompts nobody and leaves no process running. Drivers (filter, diff,
 * merge, textconv) cannot be switched off by name. None is configured, because git reads settings only from a git
 * directory that the runner wrote.
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
  // Nobody has checked the target of a redirect.
  "http.followRedirects=false",
  // In bytes per second and seconds: a silent server must not block for an hour.
  "http.lowSpeedLimit=1",
  "http.lowSpeedTime=120",
];

/** More than any output read here. The longest is the list of a remote's refs, at about 70 bytes each. */
const MAX_STDOUT_BYTES = 128 * 1_024 * 1_024;

/**
 * Runs git and returns its output.
 *
 * @throws WorkFailure for git's own failures, git_timed_out
 * @throws the reason of `signal` when it was aborted
 */
export async function git(tools: GitTools, args: readonly string[], call: GitCall): Promise<string> {
  const result = await tryGit(tools, args, call);
  if (result.exit !== 0) throw gitFailureOf(args, result, call);
  return result.stdout;
}

/** Runs git when a failing exit is a valid result. */
export async function tryGit(tools: GitTools, args: readonly string[], call: GitCall): Promise<GitResult> {
  const result = await runGit(tools, args, call);
  return { ...result, stdout: result.stdout.toString() };
}

/** Runs git as {@link git} does, for output that need not be UTF-8, such as paths. */
export async function gitBytes(tools: GitTools, args: readonly string[], call: GitCall): Promise<Buffer> {
  const { stdout, ...result } = await runGit(tools, args, call);
  if (result.exit !== 0) throw gitFailureOf(args, { ...result, stdout: "" }, call);
  return stdout;
}

type RawGitResult = Omit<GitResult, "stdout"> & { readonly stdout: Buffer };

async function runGit(tools: GitTools, args: readonly string[], call: GitCall): Promise<RawGitResult> {
  const { timeoutMs } = tools;
  const { maxBytes = MAX_STDOUT_BYTES } = call;
  const settings = [...SETTINGS, ...(call.access?.settings ?? [])];
  const complaints = new GitComplaints(call.onProgress);
  const link = linkOf(tools, commandOf(args), call, (bytes) => complaints.add(bytes));
  const result = await link.run({
    program: "git",
    args: [...settings.flatMap((setting) => ["-c", setting]), ...args],
    folder: folderOf(tools, call),
    environment: { ...environmentOf(tools, call), ...link.environment },
    channel: link.channel,
    ...(call.input !== undefined && { input: Buffer.from(call.input) }),
    timeoutMs,
    keepBytes: call.keepBytes ?? maxBytes,
    signal: call.signal,
    onOutput: (bytes, stream) => {
      if (stream === "stderr") complaints.add(bytes);
    },
  });
  await link.ended();
  if (result.stopped) call.signal?.throwIfAborted();
  if (result.timedOut) {
    throw new WorkFailure("git_timed_out", `git ${commandOf(args)} took longer than ${timeoutMs} ms`, true);
  }
  if (result.outputTruncated && call.keepBytes === undefined) {
    throw new WorkFailure("git_failed", `git ${commandOf(args)} wrote more than ${maxBytes} bytes`);
  }
  return { exit: result.exit, stdout: result.stdout, stderr: complaints.text };
}

/** How a call of git runs and reaches its remote. */
interface GitLink {
  readonly run: RunCommand;
  readonly environment: Readonly<Record<string, string>>;
  readonly channel?: Command["channel"];
  /** Resolves when all of its connections have ended. */
  ended(): Promise<void>;
}

/** The commands of git that reach a remote. */
const REMOTE_COMMANDS: ReadonlySet<string> = new Set(["fetch", "ls-remote", "push"]);

function linkOf(
  tools: GitTools,
  command: string,
  call: GitCall,
  onComplaint: (bytes: Buffer) => void,
): GitLink {
  const { programs, runApart, timeoutMs } = tools;
  const { access, repository, environment = {}, readable = [], signal } = call;
  const direct = { run: programs.run, environment: {}, ended: async () => undefined };
  const apartWith = (runApart: RunGitApart, programFiles: readonly string[]) => {
    const { GIT_OBJECT_DIRECTORY: objects } = environment;
    const writable = [
      ...(repository ? [repository.gitFolder] : []),
      ...(objects === undefined ? [] : [objects]),
    ];
    const trees = repository?.tree === undefined ? [] : [repository.tree];
    const place = { writable, readable: [...trees, ...readable, ...programFiles] };
    return { ...direct, run: (command: Command) => runApart(place, command) };
  };
  if (call.isApart && runApart) return apartWith(runApart, []);
  if (!access || access.remote.scheme === "file" || !REMOTE_COMMANDS.has(command)) return direct;
  const { answer } = access;
  const prompts = answer && { channel: (stream: Duplex) => replyToPrompts(stream, answer) };
  if (!runApart) return { ...direct, ...prompts };
  const isSsh = access.remote.scheme === "ssh";
  const apart = apartWith(runApart, isSsh ? tools.sshRelayFiles : [tools.askPass]);
  if (!isSsh) return { ...apart, ...prompts };
  let connected: Promise<void> = Promise.resolve();
  return {
    ...apart,
    // Git learns neither the key nor its location.
    environment: {
      ...Object.fromEntries(Object.keys(access.environment).map((name) => [name, ""])),
      GIT_SSH: tools.sshRelay,
      GIT_SSH_VARIANT: "ssh",
    },
    channel(stream) {
      connected = connectSsh(stream, { tools, access, timeoutMs, signal, onComplaint });
      connected.catch(() => undefined);
    },
    ended: () => connected,
  };
}

/** Returns the failure for git's result. */
export function gitFailureOf(
  args: readonly string[],
  { stderr }: GitResult,
  { access }: GitCall,
): WorkFailure {
  const failure = gitFailure(commandOf(args), stderr, access?.secrets ?? []);
  if (access?.withheld === undefined) return failure;
  if (failure.reason === "git_unauthorized") return new WorkFailure("credential_withheld", access.withheld);
  // Some hosts give this answer for repositories that they hide from anonymous users.
  if (failure.reason !== "repository_not_found") return failure;
  return new WorkFailure(failure.reason, `${failure.message}. No credential was sent: ${access.withheld}`);
}

function commandOf(args: readonly string[]): string {
  return args.find((arg, index) => !arg.startsWith("-") && args[index - 1] !== "-c") ?? "";
}

function folderOf(tools: GitTools, { repository }: GitCall): string {
  return repository?.tree ?? repository?.gitFolder ?? tools.home;
}

function environmentOf(tools: GitTools, call: GitCall): Record<string, string> {
  const { repository, access, environment } = call;
  return commandEnvironment(tools.programs, tools.home, {
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    // Always explicit, so that git never discovers a repository that a command created in or above a folder.
    GIT_DIR: repository?.gitFolder ?? "/dev/null",
    ...(repository?.tree !== undefined && { GIT_WORK_TREE: repository.tree }),
    GIT_CEILING_DIRECTORIES: dirname(folderOf(tools, call)),
    // With replace refs, git would read another commit than the one that the remote has.
    GIT_NO_REPLACE_OBJECTS: "1",
    // Overrides every protocol.*.allow of the repository and allows no remote helper.
    GIT_ALLOW_PROTOCOL: access?.remote.scheme ?? "none",
    ...environment,
    ...access?.environment,
  });
}
