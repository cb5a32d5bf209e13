import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Enclosure } from "../process/enclosure.ts";
import { endGroup, readProcessStat, type SignalGroup } from "../process/process-group.ts";
import { ARGUMENTS_DESCRIPTOR, STATUS_DESCRIPTOR } from "./bubblewrap-arguments.ts";

/** The first descriptor after standard input, output and error. */
const FIRST = 3;

let opened: number | undefined;

/** Returns the descriptor of an empty file. */
function nothing(): number {
  opened ??= openSync("/dev/null", "r");
  return opened;
}

/** Maximum wait for the processes of an ended sandbox, which the system kills. */
const MAX_GONE_MS = 10_000;

export interface SandboxedCommandOptions {
  readonly program: string;
  readonly args: readonly string[];
  /**
   * The arguments that bubblewrap reads from a descriptor. They hold secrets, and other users can see a program's
   * arguments.
   */
  readonly hiddenArgs: readonly string[];
  readonly filterFile: string;
  /** The descriptors that this process inherited, besides standard input, output and error. */
  readonly inheritedDescriptors: ReadonlySet<number>;
  readonly signalGroup: SignalGroup;
  /** True for a command that has a channel to the runner. */
  readonly hasChannel: boolean;
}

/** Wraps a command in a bubblewrap sandbox. */
export function sandboxedCommand(options: SandboxedCommandOptions): Enclosure {
  const { program, args, hiddenArgs, filterFile, inheritedDescriptors, signalGroup, hasChannel } = options;
  const filter = openSync(filterFile, "r");
  const descriptors: ("pipe" | "ignore" | number)[] = ["pipe", filter, "pipe"];
  if (hasChannel) descriptors.push("pipe");
  // Inherited descriptors would reach the work; all others are closed when a program starts.
  for (let each = FIRST + descriptors.length; each <= Math.max(0, ...inheritedDescriptors); each++) {
    descriptors.push(inheritedDescriptors.has(each) ? nothing() : "ignore");
  }
  let status: SandboxStatus | undefined;
  return {
    program,
    args,
    environment: { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    descriptors,
    started(child: ChildProcess) {
      const pipes = child.stdio as readonly unknown[];
      const given = pipes[ARGUMENTS_DESCRIPTOR] as Writable;
      given.on("error", () => undefined);
      given.end(`${hiddenArgs.join("\0")}\0`);
      status = new SandboxStatus(pipes[STATUS_DESCRIPTOR] as Readable);
    },
    async end(groupId, graceMs) {
      const first = await status?.first;
      // Only the command's processes get the signal first; the programs that confine them end with the command.
      await endGroup(signalGroup, groupId, graceMs, first?.id ?? groupId);
      if (first) await untilGone(first);
    },
    async problem() {
      return (await status?.hasRun) === false ? "no sandbox could be made for it" : undefined;
    },
    close() {
      closeSync(filter);
    },
  };
}

interface FirstProcess {
  /** The id of the first process in the sandbox, and of the command's process group. */
  readonly id: number;
  readonly startedAtTicks: string;
}

/**
 * Parses bubblewrap's status output: the id of the sandbox's first process, and the exit code once the command has
 * run.
 */
class SandboxStatus {
  /** Undefined when no process was created. */
  readonly first: Promise<FirstProcess | undefined>;
  readonly hasRun: Promise<boolean>;

  constructor(stream: Readable) {
    const { promise: first, resolve: resolveFirst } = Promise.withResolvers<FirstProcess | undefined>();
    const { promise: hasRun, resolve: resolveHasRun } = Promise.withResolvers<boolean>();
    this.first = first;
    this.hasRun = hasRun;
    let text = "";
    stream.on("error", () => undefined);
    stream.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const id = /"child-pid": *(\d+)/.exec(text)?.[1];
      if (id !== undefined) void readProcessStat(id).then(resolveFirst);
      if (text.includes('"exit-code"')) resolveHasRun(true);
    });
    stream.once("close", () => {
      if (!text.includes('"child-pid"')) resolveFirst(undefined);
      resolveHasRun(text.includes('"exit-code"'));
    });
  }
}

/** Waits for the end of a sandbox's first process, which the system ends last. */
async function untilGone({ id, startedAtTicks }: FirstProcess): Promise<void> {
  const until = performance.now() + MAX_GONE_MS;
  for (let pollMs = 1; performance.now() < until; pollMs = Math.min(pollMs * 2, 100)) {
    const stat = await readProcessStat(String(id));
    if (!stat || stat.startedAtTicks !== startedAtTicks || /[ZX]/.test(stat.state)) return;
    await delay(pollMs);
  }
}
