import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { COMPILE_CACHE, RESOLUTION_CACHE } from "./compile-cache.ts";

/** A second Node process, for what only another process can do to a file. */
export interface NodeProcess {
  /** Returns the next line that it prints, parsed as JSON. */
  next(): Promise<unknown>;
  /** Writes a line to its standard input. */
  send(line: string): void;
  /** Sends SIGKILL and waits for its end. */
  kill(): Promise<void>;
}

const root = join(import.meta.dirname, "../..");
const running = new Set<ChildProcess>();

/**
 * Starts a process that runs `code`, an ES module whose relative imports start at the repository's
 * root. In it, `print(value)` sends a line and `await nextLine()` waits for one.
 *
 * @param args its `process.argv` from 1 on
 */
export function startNode(code: string, ...args: string[]): NodeProcess {
  return startNodeWithEnvironment({}, code, ...args);
}

/**
 * Starts a process like {@link startNode}, with more environment variables.
 *
 * @param env added to the environment of this process
 */
export function startNodeWithEnvironment(
  env: Readonly<Record<string, string>>,
  code: string,
  ...args: string[]
): NodeProcess {
  return startProcess(["--input-type=module", "-e", `${PRELUDE}${code}`, ...args], env);
}

/** Starts a process that runs a file, for code that starts threads: those need a file. */
export function startFile(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): NodeProcess {
  return startProcess([file, ...args], env);
}

function startProcess(args: readonly string[], env: Readonly<Record<string, string>>): NodeProcess {
  const child = spawn(process.execPath, [...RESOLUTION_CACHE, ...args], {
    cwd: root,
    env: { ...process.env, ...COMPILE_CACHE, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  // A write to a process that has ended; `next` reports its end.
  child.stdin.on("error", () => undefined);
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async next() {
      const line = await lines.next();
      if (line.done) throw new Error(`the process ended without another line:\n${errors}`);
      return JSON.parse(line.value);
    },
    send(line) {
      child.stdin.write(`${line}\n`);
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

/** Ends the processes that are still running; call it in afterAll. */
export async function endNodes(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill("SIGKILL");
      await once(child, "exit");
    }),
  );
}

const PRELUDE = `
import { createInterface } from "node:readline";
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const nextLine = async () => (await lines.next()).value;
const print = (value) => process.stdout.write(JSON.stringify(value ?? null) + "\\n");
`;
