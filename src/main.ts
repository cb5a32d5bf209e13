import process from "node:process";
import packageJson from "../package.json" with { type: "json" };
import type { RunUntilStopped, Terminal } from "./commands/definitions/command-line.ts";
import { writeProblem } from "./commands/folders/file-access.ts";
import { createProgram, failureOf } from "./commands/program.ts";
import { ExitCode, StartError } from "./commands/start-error.ts";
import { flushLog } from "./log.ts";

// However it ends, by an uncaught exception too.
process.on("exit", flushLog);

/** True for a process that goes on whether somebody reads its output or not. */
let isService = false;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isService) return;
  // As of other programs, such as in `chartroom run list | head -1`: nothing went wrong that anybody would read about.
  if (error.code === "EPIPE") process.exit(ExitCode.outputClosed);
  fail(new StartError(`standard output cannot be written: ${writeProblem(error)}`, { cause: error }));
});
// Nothing is left that could say so.
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
  // Before it is ready: a reader of that line may send a signal at once.
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // Never ends the process, also while it starts and where there is nothing to read again.
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
  setExitCode: (code) => {
    process.exitCode = code;
  },
};

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
