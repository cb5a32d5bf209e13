import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Answer, post } from "../test/harness/call.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../test/harness/server.ts";
import { allProcessorsMs, processorMs } from "./machine.ts";

/** Processor time in milliseconds. */
export interface ProcessorTimes {
  readonly server: number;
  /** With what they started. */
  readonly runners: number;
  /** Of everything else on the machine but this process. */
  readonly others: number;
}

/** A new server with its runners, each a process of its own. */
export interface Site {
  readonly server: TestServer;
  /** Any operation as the administrator; its answer, which must be a success. */
  call(operation: string, body: object): Promise<Answer["body"]>;
  /** Lets the runners take work. */
  begin(): void;
  /** So far. */
  processors(): ProcessorTimes;
  close(): Promise<void>;
}

/** A runner's program that has registered; it begins at once, or when it is told to. */
export interface StartedRunner {
  readonly process: ChildProcess;
  begin?(): void;
}

export type StartRunner = (
  server: TestServer,
  stateDir: string,
  exchangeToken: string,
) => Promise<StartedRunner>;

const RUNNERS = 4;

/** Starts a server and four runners. */
export async function openSite(startRunner: StartRunner): Promise<Site> {
  const server = await startServer({ args: ["--log-level", "warn"] });
  const call = async (operation: string, body: object) => {
    const answer = await post(server, operation, body);
    if (answer.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const folder = temporaryFolder();
  const newRunner = async (_: unknown, index: number) => {
    const name = `Runner ${index + 1}`;
    const { exchangeToken } = await call("RunnerService/CreateRunner", { name });
    return startRunner(server, join(folder, name), exchangeToken);
  };
  const runners = await Promise.all(Array.from({ length: RUNNERS }, newRunner));
  return {
    server,
    call,
    begin() {
      for (const runner of runners) runner.begin?.();
    },
    processors() {
      const own = processorMs(server.process.pid);
      const theirs = runners.reduce((sum, runner) => sum + processorMs(runner.process.pid), 0);
      const others = allProcessorsMs() - own - theirs - processorMs(process.pid);
      return { server: own, runners: theirs, others };
    },
    async close() {
      for (const runner of runners) {
        runner.process.kill("SIGTERM");
        if (runner.process.exitCode === null) await once(runner.process, "exit");
      }
      await server.stop();
      await stopAll();
    },
  };
}
