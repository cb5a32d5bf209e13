import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecords } from "../../src/runner/process/command-record.ts";
import { post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import { hostService } from "./hosted-server.ts";
import { NO_ISOLATION, parseLog, type ReachableServer, temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** A runner that a test has started, with what it has said so far. */
export interface ObservedRunner {
  /** Folder of its token and workspaces. */
  readonly stateDir: string;
  /** Returns its log so far, one parsed line each. */
  log(): Record<string, unknown>[];
  /** Returns its complete output so far. */
  output(): string;
  /** Waits for a log line with this message and these fields, and returns it. */
  untilLogged(message: string, facts?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
}

/** The runner's program in its own process, started as an operator would. */
export interface RunnerProcess extends ObservedRunner {
  readonly process: ChildProcess;
  /** Resolves with the exit code when it ends. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM, waits for its end and returns the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and waits for its end; processes that it started keep running. */
  kill(): Promise<void>;
}

/** A runner in the process that runs hosted servers for all files of a worker. */
export interface HostedRunner extends ObservedRunner {
  /** Lets its work end or gives it back, and waits until it has stopped. */
  stop(): Promise<void>;
}

export interface RunnerProcessOptions {
  /** By default a new folder that is removed after the tests of the file; empty to pass no such setting. */
  readonly stateDir?: string;
  /** The working directory; by default the repository. */
  readonly cwd?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export type HostedRunnerOptions = Omit<RunnerProcessOptions, "cwd">;

const root = join(import.meta.dirname, "../..");
const running = new Set<ChildProcess>();
const hosted = new Set<HostedRunner>();

/** Creates a runner in the server's first organization, for its program to register with. */
export async function newExchangeToken(server: ReachableServer, name = "In the attic") {
  const made = await succeeded(post(server, "RunnerService/CreateRunner", { name }));
  return { runnerId: made.runner.runnerId as string, exchangeToken: made.exchangeToken as string };
}

/** Starts the program, with local folders allowed as remotes. */
export function startRunnerProcess(
  server: Pick<ReachableServer, "url">,
  {
    stateDir = join(temporaryFolder(), "runner"),
    cwd = root,
    args = [],
    env = {},
  }: RunnerProcessOptions = {},
): RunnerProcess {
  const settings = runnerArguments(server, stateDir, args);
  const child = spawn(process.execPath, [join(root, "bin/chartroom.js"), ...settings], {
    cwd,
    env: { PATH: process.env.PATH, ...NO_ISOLATION, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  // Not at "exit": its last output may not have been read by then.
  const ended = once(child, "close").then(([code]) => code as number | null);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return {
    ...observed(stateDir, () => output),
    process: child,
    ended,
    stop() {
      child.kill("SIGTERM");
      return ended;
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Starts the program like {@link startRunnerProcess}, next to hosted servers. */
export async function startHostedRunner(
  server: Pick<ReachableServer, "url">,
  { stateDir = join(temporaryFolder(), "runner"), args = [], env = {} }: HostedRunnerOptions = {},
): Promise<HostedRunner> {
  const logFile = join(temporaryFolder(), "log");
  const variables = { PATH: process.env.PATH, ...NO_ISOLATION, ...env };
  const service = await hostService(runnerArguments(server, stateDir, args), variables, logFile);
  const runner: HostedRunner = {
    ...observed(stateDir, () => service.output + readFileSync(logFile, "utf8")),
    async stop() {
      hosted.delete(runner);
      await service.stop();
    },
  };
  hosted.add(runner);
  return runner;
}

function runnerArguments({ url }: Pick<ReachableServer, "url">, stateDir: string, args: readonly string[]) {
  const state = stateDir === "" ? [] : ["--state-dir", stateDir];
  return ["runner", "--server", url, ...state, "--allow-file-remotes", ...args];
}

function observed(stateDir: string, output: () => string): ObservedRunner {
  const log = () => parseLog(output());
  return {
    stateDir,
    log,
    output,
    async untilLogged(message, facts = {}) {
      const fits = (line: Record<string, unknown>) =>
        line.msg === message && Object.entries(facts).every(([name, value]) => line[name] === value);
      const lines = await until(log, (lines) => lines.some(fits));
      return lines.find(fits) ?? {};
    },
  };
}

/** Creates a runner, starts its program and waits until it takes work. */
export async function startRegisteredRunner(
  server: ReachableServer,
  options: RunnerProcessOptions = {},
): Promise<RunnerProcess & { readonly runnerId: string }> {
  const { runnerId, exchangeToken } = await newExchangeToken(server);
  const env = { ...options.env, CHARTROOM_EXCHANGE_TOKEN: exchangeToken };
  const runner = startRunnerProcess(server, { ...options, env });
  await runner.untilLogged("the runner takes work");
  return { ...runner, runnerId };
}

/** Creates a runner, starts its program next to hosted servers, and waits until it takes work. */
export async function startRegisteredHostedRunner(
  server: ReachableServer,
  options: HostedRunnerOptions = {},
): Promise<HostedRunner & { readonly runnerId: string }> {
  const { runnerId, exchangeToken } = await newExchangeToken(server);
  const env = { ...options.env, CHARTROOM_EXCHANGE_TOKEN: exchangeToken };
  const runner = await startHostedRunner(server, { ...options, env });
  await runner.untilLogged("the runner takes work");
  return { ...runner, runnerId };
}

/** Ends every runner that a file started, with its commands; call it in afterAll, before the servers are stopped. */
export async function stopRunners(): Promise<void> {
  await Promise.all([
    ...[...running].map(async (child) => {
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
    ...[...hosted].map(async (runner) => {
      const stopped = runner.stop();
      // An agent that waits for input would be waited for.
      for (const groupId of await commandsOf(runner)) endGroup(groupId);
      await stopped;
    }),
  ]);
}

/** Returns the process groups of the commands that a runner runs, as it records them for the next. */
async function commandsOf({ stateDir }: ObservedRunner): Promise<number[]> {
  const records = await readRecords(join(stateDir, "commands"));
  return records.flatMap(({ groupIds }) => groupIds);
}

function endGroup(groupId: number): void {
  try {
    process.kill(-groupId, "SIGKILL");
  } catch {
    // It has ended.
  }
}
