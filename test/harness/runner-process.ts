import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import { type ReachableServer, temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** The runner's program in its own process, started as an operator would. */
export interface RunnerProcess {
  /** Folder of its token and workspaces. */
  readonly stateDir: string;
  readonly process: ChildProcess;
  /** Returns its log so far, one parsed line each. */
  log(): Record<string, unknown>[];
  /** Returns its complete output so far. */
  output(): string;
  /** Waits for a log line with this message and these fields, and returns it. */
  untilLogged(message: string, facts?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  /** Resolves with the exit code when it ends. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM, waits for its end and returns the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and waits for its end; processes that it started keep running. */
  kill(): Promise<void>;
}

export interface RunnerProcessOptions {
  /** By default a new folder that is removed after the tests of the file; empty to pass no such setting. */
  readonly stateDir?: string;
  /** The working directory; by default the repository. */
  readonly cwd?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "../..");
const running = new Set<ChildProcess>();

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
  const state = stateDir === "" ? [] : ["--state-dir", stateDir];
  const settings = ["--server", server.url, ...state, "--allow-file-remotes", ...args];
  const child = spawn(process.execPath, [join(root, "bin/chartroom.js"), "runner", ...settings], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
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
  const log = () =>
    output
      .split("\n")
      .slice(0, -1)
      .filter((line) => line.startsWith("{"))
      .map((line): Record<string, unknown> => JSON.parse(line));
  return {
    stateDir,
    process: child,
    log,
    output: () => output,
    async untilLogged(message, facts = {}) {
      const fits = (line: Record<string, unknown>) =>
        line.msg === message && Object.entries(facts).every(([name, value]) => line[name] === value);
      const lines = await until(log, (lines) => lines.some(fits));
      return lines.find(fits) ?? {};
    },
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

/** Ends every runner that a file started; call it in afterAll, before the servers are stopped. */
export async function stopRunners(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
  );
}
