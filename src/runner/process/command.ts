import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import type { Duplex, Readable, Writable } from "node:stream";
import { WorkFailure } from "../protocol/work-failure.ts";
import { CommandOutput, type OnOutput } from "./command-output.ts";
import type { CommandRecord } from "./command-record.ts";
import { MAX_TIMER_MS } from "./deadline.ts";
import type { Enclose, Enclosure } from "./enclosure.ts";
import { endGroup, GRACE_MS, type SignalGroup } from "./process-group.ts";

/** A program to run. It is not interpreted by a shell, unless the program is a shell. */
export interface Command {
  /** The name; searched in PATH of `environment`, unless it has a slash. */
  readonly program: string;
  readonly args: readonly string[];
  /** The folder that it runs in. */
  readonly folder: string;
  /** The complete environment; nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * The standard input; closed when absent. A function gets its open end once the
   * program has started, and closes it; its errors are handled, since a program
   * need not read its input.
   */
  readonly input?: Uint8Array | ((stdin: Writable) => void) | undefined;
  /** The time limit in milliseconds from the start; none when absent. */
  readonly timeoutMs?: number | undefined;
  /** The number of bytes of standard output that the result holds; none when absent. */
  readonly keepBytes?: number | undefined;
  /** Receives all output, each stream in its order. */
  readonly onOutput?: OnOutput | undefined;
  /** Stops the program when aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Gets the other end of the program's {@link CHANNEL_DESCRIPTOR}, once it has started; errors of the stream are
   * handled. Without it the program has no such descriptor.
   */
  readonly channel?: ((stream: Duplex) => void) | undefined;
}

/** The descriptor through which a program talks to the runner; those from 3 up to it are used by the isolation. */
export const CHANNEL_DESCRIPTOR = 6;

/** The descriptors from 3 to the channel, for a command without isolation. */
const UP_TO_CHANNEL = ["ignore", "ignore", "ignore", "pipe"] as const;

/** How a program ended. */
export interface CommandResult {
  /** The exit code; null when a signal ended it, and when it was stopped before it started. */
  readonly exit: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  /** True if the command's AbortSignal ended it. */
  readonly stopped: boolean;
  /** The first `keepBytes` of standard output. */
  readonly stdout: Buffer;
  /** True if there was more of it. */
  readonly outputTruncated: boolean;
}

/** Describes for people how a program ended, as a phrase after its name. */
export function describeExit({ exit, signal }: Pick<CommandResult, "exit" | "signal">): string {
  return exit === null ? `was ended by ${signal}` : `ended with exit status ${exit}`;
}

/**
 * Runs a program in its own process group and resolves when the whole group is
 * gone: processes that it left in the background are ended as well. The group is
 * ended with SIGTERM, and with SIGKILL after the grace period. A process that
 * started a new session has left the group and stays.
 *
 * @throws WorkFailure command_not_started
 * @throws what `onOutput` threw, once the group is gone
 */
export type RunCommand = (command: Command) => Promise<CommandResult>;

/** The function that runs programs, and the PATH in which they are found. */
export interface Programs {
  readonly run: RunCommand;
  readonly path: string;
}

export interface CommandRunnerOptions {
  /** Time from SIGTERM to SIGKILL, in milliseconds; 5,000 when absent. */
  readonly graceMs?: number;
  /** Records running groups, in case this process is killed. */
  readonly record?: CommandRecord;
  /** Isolates the commands; they run without isolation when absent. */
  readonly enclose?: Enclose;
}

export function createCommandRunner(
  signalGroup: SignalGroup,
  options: CommandRunnerOptions = {},
): RunCommand {
  return (command) => run(command, signalGroup, options);
}

/**
 * Returns the complete environment of a command: the given variables and a few fixed ones. Git does not look for a
 * repository in the folders that contain `home` or above them.
 */
export function commandEnvironment(
  { path }: Pick<Programs, "path">,
  home: string,
  variables: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return { PATH: path, HOME: home, LANG: "C.UTF-8", GIT_CEILING_DIRECTORIES: dirname(home), ...variables };
}

const NOT_STARTED: CommandResult = {
  exit: null,
  signal: null,
  timedOut: false,
  stopped: true,
  stdout: Buffer.alloc(0),
  outputTruncated: false,
};

async function run(
  command: Command,
  signalGroup: SignalGroup,
  { enclose, ...options }: CommandRunnerOptions,
): Promise<CommandResult> {
  if (command.signal?.aborted) return NOT_STARTED;
  if (!enclose) return runIn(undefined, command, signalGroup, options);
  const enclosure = await encloseUnlessStopped(enclose, command);
  if (!enclosure) return NOT_STARTED;
  try {
    return await runIn(enclosure, command, signalGroup, options);
  } finally {
    enclosure.close();
  }
}

/** Encloses a command, which may take long; returns undefined when the command is stopped before that is done. */
async function encloseUnlessStopped(enclose: Enclose, command: Command): Promise<Enclosure | undefined> {
  const { signal } = command;
  const entering = enclose(command);
  const { promise: stopped, resolve } = Promise.withResolvers<undefined>();
  const onAbort = () => resolve(undefined);
  signal?.addEventListener("abort", onAbort);
  try {
    const enclosure = await Promise.race([entering, stopped]);
    if (!enclosure)
      entering.then(
        (late) => late.close(),
        () => undefined,
      );
    return enclosure;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

async function runIn(
  enclosure: Enclosure | undefined,
  command: Command,
  signalGroup: SignalGroup,
  { graceMs = GRACE_MS, record }: CommandRunnerOptions,
): Promise<CommandResult> {
  const child = await spawnProgram(command, enclosure);
  const { groupId, exited } = child;
  const output = new CommandOutput(child.stdout, child.stderr, command.keepBytes ?? 0, command.onOutput);
  let cause: EndCause;
  try {
    record?.add(groupId);
    cause = await waitForEnd(exited, output.done, command);
  } finally {
    if (enclosure) await enclosure.end(groupId, graceMs);
    else await endGroup(signalGroup, groupId, graceMs);
    record?.remove(groupId);
  }
  await output.drain(command.signal);
  const [exit, signal] = await exited;
  const problem = cause === "exit" && exit !== 0 ? await enclosure?.problem() : undefined;
  if (problem !== undefined) throw notStarted(command, problem);
  return {
    exit,
    signal,
    timedOut: cause === "timeout",
    stopped: cause === "signal",
    stdout: output.stdout,
    outputTruncated: output.truncated,
  };
}

interface SpawnedProgram {
  /** The id of the process and of its group. */
  readonly groupId: number;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The exit code and signal, one of which is null. */
  readonly exited: Promise<[number | null, NodeJS.Signals | null]>;
}

async function spawnProgram(command: Command, enclosure: Enclosure | undefined): Promise<SpawnedProgram> {
  const { program, args, environment } = enclosure ?? command;
  const { input } = command;
  try {
    const child = spawn(program, [...args], {
      // The isolation changes to the command's folder inside, where the path may mean something else.
      cwd: enclosure ? "/" : command.folder,
      env: environment,
      detached: true,
      stdio: [input ? "pipe" : "ignore", "pipe", "pipe", ...descriptorsOf(command, enclosure)],
    });
    const exited = once(child, "exit") as SpawnedProgram["exited"];
    exited.catch(() => undefined);
    await once(child, "spawn");
    const { pid, stdin, stdout, stderr } = child;
    if (pid === undefined || !stdout || !stderr) throw new Error("it has no process");
    enclosure?.started(child);
    if (command.channel) {
      const stream = (child.stdio as readonly unknown[])[CHANNEL_DESCRIPTOR] as Duplex;
      stream.on("error", () => undefined);
      command.channel(stream);
    }
    if (input && stdin) writeInput(stdin, input);
    return { groupId: pid, stdout, stderr, exited };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Do not use the message about an invalid value: it quotes the value.
    const cause = code?.startsWith("ERR_") ? "a NUL character in its arguments or variables" : message;
    throw notStarted(command, cause);
  }
}

function descriptorsOf(
  { channel }: Command,
  enclosure: Enclosure | undefined,
): readonly ("pipe" | "ignore" | number)[] {
  return enclosure ? enclosure.descriptors : channel ? UP_TO_CHANNEL : [];
}

function notStarted({ program }: Command, cause: string): WorkFailure {
  return new WorkFailure("command_not_started", `${program} could not be started: ${cause}`);
}

function writeInput(stdin: Writable, input: NonNullable<Command["input"]>): void {
  stdin.on("error", () => undefined);
  if (typeof input === "function") input(stdin);
  else stdin.end(input);
}

type EndCause = "exit" | "timeout" | "signal" | "reader";

/**
 * Returns the first cause that ends a program: its own exit, the timeout, the
 * caller, or a failure of the output's reader.
 */
async function waitForEnd(
  exited: Promise<unknown>,
  reading: Promise<unknown>,
  { timeoutMs, signal }: Command,
): Promise<EndCause> {
  const { promise, resolve } = Promise.withResolvers<EndCause>();
  const onAbort = () => resolve("signal");
  exited.then(
    () => resolve("exit"),
    () => resolve("exit"),
  );
  reading.catch(() => resolve("reader"));
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => resolve("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
