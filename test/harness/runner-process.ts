import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import { type TestServer, temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** The runner's program in a process of its own, started as an operator would. */
export interface RunnerProcess {
  /** Folder of its token and workspaces. */
  readonly stateDir: string;
  readonly process: ChildProcess;
  /** Its log so far, one parsed line each. */
  log(): Record<string, unknown>[];
  /** Everything that it has written. */
  output(): string;
  /** Resolves with the line of its log that says this, and has these facts, once it is there. */
  said(message: string, facts?: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  /** Resolves with the exit code when it ends. */
  readonly ended: Promise<number | null>;
  /** SIGTERM and wait; the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL and wait; what it started stays. */
  kill(): Promise<void>;
}

export interface RunnerProcessOptions {
  /** A new one by default, which is removed after the tests of the file; empty for none by a setting. */
  readonly stateDir?: string;
  /** The working directory; by default the repository. */
  readonly cwd?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "../..");
const running = new Set<ChildProcess>();

/** Makes a runner of the server's first organization, for its program to register with. */
export async function newExchangeToken(server: TestServer, name = "In the attic") {
  const made = await succeeded(post(server, "RunnerService/CreateRunner", { name }));
  return { runnerId: made.runner.runnerId as string, exchangeToken: made.exchangeToken as string };
}

/** Starts the program; folders of this machine may be remotes. */
export function startRunnerProcess(
  server: Pick<TestServer, "url">,
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
  // Not its exit: what it wrote last may have to be read yet then.
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
    async said(message, facts = {}) {
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

/** Makes a runner, starts its program and waits until it takes work. */
export async function startRegisteredRunner(
  server: TestServer,
  options: RunnerProcessOptions = {},
): Promise<RunnerProcess & { readonly runnerId: string }> {
  const { runnerId, exchangeToken } = await newExchangeToken(server);
  const env = { ...options.env, CHARTROOM_EXCHANGE_TOKEN: exchangeToken };
  const runner = startRunnerProcess(server, { ...options, env });
  await runner.said("the runner takes work");
  return { ...runner, runnerId };
}

/** Ends every runner that a file started; call it in afterAll, before the servers are ended. */
export async function stopRunners(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
  );
}
