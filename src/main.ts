import process from "node:process";
import { setImmediate } from "node:timers/promises";
import packageJson from "../package.json" with { type: "json" };
import type { RunUntilStopped, Terminal } from "./commands/definitions/command-line.ts";
import { writeProblem } from "./commands/folders/file-access.ts";
import { createProgram, failureOf } from "./commands/program.ts";
import { ExitCode, StartError } from "./commands/start-error.ts";
import { flushLog } from "./log.ts";

// Runs however the process ends, including by an uncaught exception.
process.on("exit", flushLog);

/** True for a process that continues when nobody reads its output. */
let isService = false;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isService) return;
  // Ends silently when the reader closes the pipe, as other programs do in `chartroom run list | head -1`.
  if (error.code === "EPIPE") process.exit(ExitCode.outputClosed);
  fail(new StartError(`standard output cannot be written: ${writeProblem(error)}`, { cause: error }));
});
// A failure of standard error cannot be reported anywhere.
process.stderr.on("error", () => undefined);

const runUntilStopped: RunUntilStopped = async (start) => {
  isService = true;
  const starting = start();
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    starting
      .then((running) => running.stop())
      .then(
        () => process.exit(0),
        (error) => fail(error),
      );
  };
  // Installed before the ready line is printed: its reader may send a signal immediately.
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // SIGHUP never ends the process, even while it starts or when there is nothing to reload.
  process.on("SIGHUP", () => void starting.then((running) => running.reload?.()).catch(() => undefined));
  await (await starting).ended;
};

const terminal: Terminal = {
  env: process.env,
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
  // Opened on demand: a server leaves its standard input alone.
  get input() {
    return process.stdin;
  },
  get output() {
    return process.stdout;
  },
  nodePath: process.execPath,
  isRoot: process.getuid?.() === 0,
  figures: process,
  signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
  ignoreInterrupts: () => {
    const stay = () => undefined;
    process.on("SIGINT", stay);
    return () => void process.off("SIGINT", stay);
  },
  whenInterrupted: (cleanUp) => {
    const end = (signal: keyof typeof ExitCode.interrupted) => {
      process.stderr.write(`chartroom: ${outcomeOf(cleanUp)}\n`);
      stopListening();
      // A shell sees that the signal has ended it. Threads that are still busy do not delay this, unlike an exit.
      process.kill(process.pid, signal);
      // The first process of a container outlives its own signals; it ends with the current step of its threads.
      process.exit(ExitCode.interrupted[signal]);
    };
    const stopListening = () => {
      for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, end);
    };
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, end);
    return async () => {
      // A signal that came during synchronous work is delivered within one turn of the event loop.
      await setImmediate();
      await setImmediate();
      stopListening();
    };
  },
  setExitCode: (code) => {
    process.exitCode = code;
  },
};

/** Cleans up after an interrupt. @returns the sentence about its outcome, also when something could not be removed */
function outcomeOf(cleanUp: () => string): string {
  try {
    return cleanUp();
  } catch (error) {
    return `interrupted: unfinished files could not be removed: ${(error as Error).message}`;
  }
}

function fail(error: unknown): never {
  const { text, exitCode } = failureOf(error);
  process.stderr.write(text);
  process.exit(exitCode);
}

const version = `chartroom ${packageJson.version} on Node ${process.versions.node}`;
createProgram(terminal, runUntilStopped, (program) =>
  program.version(version, "--version", "print the version"),
)
  .parseAsync(process.argv)
  .catch(fail);
