/** Runs the command line, servers above all, in one process: the program that `hosted-server.ts` starts and asks. */
import { closeSync, openSync, writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { CommanderError } from "commander";
import type { RunningService, Terminal } from "../../src/commands/definitions/command-line.ts";
import { createProgram, failureOf } from "../../src/commands/program.ts";
import type { HostAnswer, HostRequest } from "./hosted-server.ts";

/** A service that a command has started, and its log. */
interface Started {
  readonly service: RunningService;
  readonly log: LogFile | undefined;
}

/** A file to which the log of one service goes, as that of a process goes to its standard error. */
interface LogFile {
  readonly write: (lines: string) => void;
  close(): void;
}

/** The services that commands have started, by the numbers of their requests. */
const running = new Map<number, Started>();

process.on("message", (request: HostRequest) => {
  const work = "stop" in request ? stop(request) : run(request);
  work.then((answer) => process.send?.(answer));
});
// The process that started this one has ended.
process.on("disconnect", () => process.exit());

/** Runs a command to its end, or until the service that it runs has started. */
async function run({
  id,
  args,
  env,
  input,
  logFile,
}: Extract<HostRequest, { args: unknown }>): Promise<HostAnswer> {
  let [code, stdout, stderr] = [0, "", ""];
  const print = (text: string) => {
    stdout += text;
  };
  const writeErr = (text: string) => {
    stderr += text;
  };
  const log = logFile === undefined ? undefined : openLog(logFile);
  const terminal: Terminal = {
    env,
    print,
    printError: writeErr,
    ...(log && { writeLog: log.write }),
    input: Readable.from(input === "" ? [] : [Buffer.from(input)]),
    output: new Writable({
      decodeStrings: false,
      write(text, _, done) {
        print(String(text));
        done();
      },
    }),
    nodePath: process.execPath,
    isRoot: process.getuid?.() === 0,
    figures: process,
    signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
    setExitCode: (exitCode) => {
      code = exitCode;
    },
  };
  const untilStarted = async (start: () => Promise<RunningService>) => {
    const service = await start();
    running.set(id, { service, log });
    // As a process of its own would print it.
    service.ended?.catch((error) => log?.write(failureOf(error).text));
  };
  const program = createProgram(terminal, untilStarted, (each) =>
    each.exitOverride().configureOutput({ writeOut: print, writeErr }),
  );
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    const { exitCode, text } =
      error instanceof CommanderError ? { exitCode: error.exitCode, text: "" } : failureOf(error);
    writeErr(text);
    code = exitCode;
    log?.close();
  }
  return { id, code, stdout, stderr };
}

async function stop({ id, stop }: Extract<HostRequest, { stop: number }>): Promise<HostAnswer> {
  const started = running.get(stop);
  running.delete(stop);
  try {
    await started?.service.stop();
    return { id, code: 0, stdout: "", stderr: "" };
  } catch (error) {
    return { id, code: 1, stdout: "", stderr: String((error as Error).stack) };
  } finally {
    // Its last lines are written when the turn ends.
    await setImmediate();
    started?.log?.close();
  }
}

function openLog(file: string): LogFile {
  const descriptor = openSync(file, "a");
  let isOpen = true;
  return {
    write(lines) {
      if (isOpen) writeSync(descriptor, lines);
    },
    close() {
      isOpen = false;
      closeSync(descriptor);
    },
  };
}
