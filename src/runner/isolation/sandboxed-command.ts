import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Enclosure } from "../process/enclosure.ts";
import { endGroup, readProcessStat, type SignalGroup } from "../process/process-group.ts";
import { ARGUMENTS_DESCRIPTOR, STATUS_DESCRIPTOR } from "./bubblewrap-arguments.ts";

/** The first descriptor after those of input and output. */
const FIRST = 3;

let opened: number | undefined;

/** Returns the descriptor of a file that is empty. */
function nothing(): number {
  opened ??= openSync("/dev/null", "r");
  return opened;
}

/** Time in which the processes of a sandbox are gone once it has ended: the system kills them. */
const MAX_GONE_MS = 10_000;

export interface SandboxedCommandOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** The arguments that bubblewrap reads from a descriptor: they hold secrets, and other users see those of a program. */
  readonly hiddenArgs: readonly string[];
  readonly filterFile: string;
  /** The descriptors other than those of input and output that this process was started with. */
  readonly inheritedDescriptors: ReadonlySet<number>;
  readonly signalGroup: SignalGroup;
  /** True for a command with a descriptor to the runner. */
  readonly hasChannel: boolean;
}

/** Returns a command in a sandbox of bubblewrap. */
export function sandboxedCommand(options: SandboxedCommandOptions): Enclosure {
  const { program, args, hiddenArgs, filterFile, inheritedDescriptors, signalGroup, hasChannel } = options;
  const filter = openSync(filterFile, "r");
  const descriptors: ("pipe" | "ignore" | number)[] = ["pipe", filter, "pipe"];
  if (hasChannel) descriptors.push("pipe");
  // They would reach the work; all others are closed at the start of any program.
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
      // The command's processes are asked; what keeps them in ends with the command.
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
  /** The id of the first process in the sandbox, and of the group of the command. */
  readonly id: number;
  readonly startedAtTicks: string;
}

/** The facts that bubblewrap tells of a sandbox: the id of its first process, and the exit code of a command that has run. */
class SandboxStatus {
  /** Undefined where no process was made. */
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

/** Waits for the end of the first process of a sandbox, which the system lets end last. */
async function untilGone({ id, startedAtTicks }: FirstProcess): Promise<void> {
  const until = performance.now() + MAX_GONE_MS;
  for (let pollMs = 1; performance.now() < until; pollMs = Math.min(pollMs * 2, 100)) {
    const stat = await readProcessStat(String(id));
    if (!stat || stat.startedAtTicks !== startedAtTicks || /[ZX]/.test(stat.state)) return;
    await delay(pollMs);
  }
}
