import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { dataEnvironmentOf, dropAllData } from "./data-config.ts";
import { hostCommand, hostService, STRICT } from "./hosted-server.ts";
import { copyTemplate } from "./sqlite-template.ts";

/** What clients of a server, and commands on its data, have to know. */
export interface ReachableServer {
  /** Without a trailing slash and without /api. */
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  /** The token printed by the first start; empty when the data folder was not new. */
  readonly token: string;
}

/** A server that a test has started, with what it has said so far. */
export interface ObservedServer extends ReachableServer {
  /** Returns its standard output. */
  output(): string;
  /** Returns its log so far, one parsed line each. */
  log(): Record<string, unknown>[];
  /** Returns the raw log, to check what must not be in it. */
  logText(): string;
}

/** A server in the process that runs such servers for all files of a worker. */
export interface HostedServer extends ObservedServer {
  /** Lets accepted requests finish, and closes its data. */
  stop(): Promise<void>;
}

/** A server in its own process on a free port, started as the README describes. */
export interface TestServer extends ObservedServer {
  readonly process: ChildProcess;
  /** Sends SIGTERM, waits for its end and returns the exit code. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL and waits for its end. */
  kill(): Promise<void>;
}

export interface StartOptions {
  /** An existing data folder; by default a new one that is removed after the tests of the file. */
  readonly dataDir?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Root folder of another release's sources, such as from {@link sourcesOf}. */
  readonly release?: string;
  /** A program and its arguments that starts the command that follows, such as from {@link onOwnDisk}. */
  readonly commandPrefix?: readonly string[];
}

/** The options of a server that runs next to others. */
export type HostedOptions = Pick<StartOptions, "dataDir" | "args" | "env">;

const URL_LINE = /^Chartroom is ready at (\S+)$/m;
const TOKEN = /cr_pat_\w+/;
const root = join(import.meta.dirname, "../..");
const running = new Set<ChildProcess>();
const hosted = new Set<HostedServer>();
const folders: string[] = [];

/** Starts a server and waits until it accepts requests. */
export async function startServer(options: StartOptions = {}): Promise<TestServer> {
  const isNew = options.dataDir === undefined || !existsSync(options.dataDir);
  const dataDir = options.dataDir ?? temporaryFolder();
  const isOnSqlite = options.env?.CHARTROOM_DATABASE_URL === undefined;
  if (options.dataDir === undefined && isOnSqlite && !options.release) copyTemplate(dataDir);
  const [program = process.execPath, ...rest] = [...(options.commandPrefix ?? []), process.execPath];
  const child = spawn(
    program,
    [
      ...rest,
      ...(options.release ? [] : STRICT),
      "bin/chartroom.js",
      "serve",
      "--port",
      "0",
      "--data-dir",
      dataDir,
      ...(options.args ?? []),
    ],
    {
      cwd: options.release ?? root,
      env: {
        ...environmentFor(dataDir),
        // Servers of tests run at the same time, and the address serves one. Earlier releases do not know it.
        ...(options.release === undefined && { CHARTROOM_METRICS_ADDRESS: "none" }),
        // Earlier releases do not know the setting.
        ...(options.release && { CHARTROOM_ISOLATION: undefined }),
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  running.add(child);
  child.once("exit", () => running.delete(child));
  let output = "";
  let logText = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    logText += chunk;
  });
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      output += `${line}\n`;
      const url = URL_LINE.exec(line)?.[1];
      if (url) resolve(url);
    });
    // Not at "exit": its last output may not have been read by then.
    child.once("close", (code) =>
      reject(new Error(`the server ended with ${code} before it was ready:\n${logText}`)),
    );
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  const url = await ready;
  while (isNew && !/cr_pat_\w+'/.test(output)) await once(child.stdout, "data");
  return {
    url,
    port: Number(new URL(url).port),
    dataDir,
    token: TOKEN.exec(output)?.[0] ?? "",
    process: child,
    output: () => output,
    log: () => parseLog(logText),
    logText: () => logText,
    async stop() {
      child.kill("SIGTERM");
      return ended;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/**
 * Starts a server whose process is not the test's concern: it runs with other servers in one process, which saves the
 * processor time that a process of its own takes to load its modules. A test that looks at the process, or that kills it,
 * needs {@link startServer}.
 */
export async function startHostedServer(options: HostedOptions = {}): Promise<HostedServer> {
  const dataDir = options.dataDir ?? temporaryFolder();
  if (options.dataDir === undefined) copyTemplate(dataDir);
  const args = ["--port", "0", "--data-dir", dataDir, ...(options.args ?? [])];
  const logFile = join(temporaryFolder(), "log");
  const env = { ...environmentFor(dataDir), CHARTROOM_METRICS_ADDRESS: "none", ...options.env };
  const { output, stop } = await hostService(["serve", ...args], env, logFile);
  const logText = () => readFileSync(logFile, "utf8");
  const url = URL_LINE.exec(output)?.[1] ?? "";
  const server: HostedServer = {
    url,
    port: Number(new URL(url).port),
    dataDir,
    token: TOKEN.exec(output)?.[0] ?? "",
    output: () => output,
    log: () => parseLog(logText()),
    logText,
    async stop() {
      hosted.delete(server);
      await stop();
    },
  };
  hosted.add(server);
  return server;
}

/** Returns the whole lines of a log, parsed. */
export function parseLog(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}

/** The result of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line to its end, in a process of its own. @param input its standard input, by default nothing */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = "",
): Promise<CommandResult> {
  const child = spawn(process.execPath, [...STRICT, "bin/chartroom.js", ...args], {
    cwd: root,
    env: commandEnvironment(args, env),
    stdio: ["pipe", "pipe", "pipe"],
  });
  // A command may end without having read it.
  child.stdin.on("error", () => undefined).end(input);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

/**
 * Runs a command in the process of the hosted servers, which saves it from loading its modules: for tests of what commands do to the
 * data. Tests of a command as a program, which ends by itself, reads its input and has a terminal, need
 * {@link runCommand}.
 */
export async function runHostedCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = "",
): Promise<CommandResult> {
  const { code, stdout, stderr } = await hostCommand(args, commandEnvironment(args, env), { input });
  return { code, stdout, stderr };
}

/** Starts a command that goes on until it is stopped in the process of the host; with its output and its log. */
export async function startHostedCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const logFile = join(temporaryFolder(), "log");
  writeFileSync(logFile, "");
  const { output, stop } = await hostService(args, commandEnvironment(args, env), logFile);
  return { output, stop, log: () => parseLog(readFileSync(logFile, "utf8")) };
}

function commandEnvironment(args: readonly string[], env: Readonly<Record<string, string>>) {
  return { ...plainEnvironment(), ...dataEnvironmentOf(dataDirIn(args)), ...env };
}

/** Returns the data folder that the arguments of a command name. */
function dataDirIn(args: readonly string[]): string | undefined {
  const flag = args.indexOf("--data-dir");
  return flag < 0 ? undefined : args[flag + 1];
}

/** Creates a folder that is removed when the file's tests are over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-test-"));
  folders.push(folder);
  return folder;
}

/** Ends every server that a file started, and removes its folders and their databases; call it in afterAll. */
export async function stopAll(): Promise<void> {
  await Promise.all([
    ...[...running].map(async (child) => {
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
    ...[...hosted].map((server) => server.stop()),
  ]);
  // What a killed runner has left may still write there: a folder that gets a file while it is emptied is not empty.
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  await dropAllData();
}

/** Returns the environment of a server of this data; it keeps the files of a local runner out of the user's own folder. */
function environmentFor(dataDir: string) {
  return {
    ...plainEnvironment(),
    XDG_STATE_HOME: join(dataDir, "state-home"),
    ...dataEnvironmentOf(dataDir),
  };
}

/** Kept, so that all tests can run with either path of unary calls. */
const FAST_PATH = "CHARTROOM_FAST_PATH";

/** For runners of tests that are not about isolation: tests run as root too, and need nothing installed. */
export const NO_ISOLATION = { CHARTROOM_ISOLATION: "none" };

/** Returns the environment without the user's other settings of Chartroom. */
function plainEnvironment(): Record<string, string | undefined> {
  const isKept = (name: string) => name === FAST_PATH || !name.startsWith("CHARTROOM_");
  const kept = Object.entries(process.env).filter(([name]) => isKept(name));
  return { ...Object.fromEntries(kept), ...NO_ISOLATION };
}
