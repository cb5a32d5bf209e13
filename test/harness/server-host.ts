/** Runs the command line, servers above all, in one process: the program that `hosted-server.ts` starts and asks. */
import { Readable, Writable } from "node:stream";
import { CommanderError } from "commander";
import type { RunningService, Terminal } from "../../src/commands/definitions/command-line.ts";
import { createProgram, failureOf } from "../../src/commands/program.ts";
import type { HostAnswer, HostRequest } from "./hosted-server.ts";

/** The services that commands have started, by the numbers of their requests. */
const running = new Map<number, RunningService>();

process.on("message", (request: HostRequest) => {
  const work = "stop" in request ? stop(request) : run(request);
  work.then((answer) => process.send?.(answer));
});
// The process that started this one has ended.
process.on("disconnect", () => process.exit());

/** Runs a command to its end, or until the service that it runs has started. */
async function run({ id, args, env, input }: Extract<HostRequest, { args: unknown }>): Promise<HostAnswer> {
  let [code, stdout, stderr] = [0, "", ""];
  const print = (text: string) => {
    stdout += text;
  };
  const terminal: Terminal = {
    env,
    print,
    input: Readable.from(input === "" ? [] : [Buffer.from(input)]),
    output: new Writable({
      decodeStrings: false,
      write(text, _, done) {
        print(String(text));
        done();
      },
    }),
    isRoot: process.getuid?.() === 0,
    signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
    setExitCode: (exitCode) => {
      code = exitCode;
    },
  };
  const untilStarted = async (start: () => Promise<RunningService>) => {
    running.set(id, await start());
  };
  const writeErr = (text: string) => {
    stderr += text;
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
  }
  return { id, code, stdout, stderr };
}

async function stop({ id, stop }: Extract<HostRequest, { stop: number }>): Promise<HostAnswer> {
  try {
    await running.get(stop)?.stop();
    return { id, code: 0, stdout: "", stderr: "" };
  } catch (error) {
    return { id, code: 1, stdout: "", stderr: String((error as Error).stack) };
  } finally {
    running.delete(stop);
  }
}
