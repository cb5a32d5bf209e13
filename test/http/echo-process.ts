import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ListenerLimits } from "../../src/http/connection/listener-limits.ts";
import { COMPILE_CACHE } from "../harness/compile-cache.ts";

/**
 * Limits short enough for a test to wait for. They also pass while a process is suspended: a
 * connection that must stay open needs longer ones, or the controllable clock of EchoOptions.
 */
export const SHORT_LIMITS: Partial<ListenerLimits> = {
  headersTimeoutMs: 400,
  keepAliveTimeoutMs: 300,
  idleSessionMs: 500,
  bodyIdleMs: 500,
  discardMs: 200,
  flushMs: 300,
  checkIntervalMs: 25,
};

export interface EchoOptions {
  readonly limits?: Partial<ListenerLimits>;
  readonly tls?: { key: string; cert: string };
  /**
   * Maximum duration of a drain; by default long enough to be distinguished from a drain that does not wait
   * for it.
   */
  readonly graceMs?: number;
  /** True for a clock that only the test advances; see echo-server.ts. */
  readonly clock?: boolean;
}

/** A message that echo-server.ts prints. */
export interface EchoEvent {
  readonly event: string;
  readonly bytes?: number;
  readonly code?: string;
  readonly isDone?: boolean;
  readonly ms?: number;
}

export interface Echo {
  readonly port: number;
  /** Returns the next event of that kind, in order; earlier ones of other kinds are skipped. */
  next(event: string): Promise<EchoEvent>;
  /**
   * Advances the clock, and resolves when the limits have been checked since. Needs `clock`; skips
   * events as `next` does.
   */
  pass(ms: number): Promise<void>;
  /** Requests a drain. */
  terminate(): void;
  /** Resolves with the time and the exit code of the process; the code is null when a signal ended it. */
  readonly exited: Promise<{ code: number | null; at: number }>;
  /** Returns its standard error, such as an uncaught exception. */
  complaints(): string;
}

const PROGRAM = fileURLToPath(new URL("./echo-server.ts", import.meta.url));
const running = new Set<ChildProcess>();

export async function startEcho(options: EchoOptions = {}): Promise<Echo> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], {
    env: { ...process.env, ...COMPILE_CACHE },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  const exited = once(child, "exit").then(([code]) => {
    running.delete(child);
    return { code: code as number | null, at: performance.now() };
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the server ended: ${complaints}`);
    return JSON.parse(value);
  };
  const { port } = (await line()) as { port: number };
  const next = async (event: string) => {
    for (;;) {
      const said = (await line()) as EchoEvent;
      if (said.event === event) return said;
    }
  };
  return {
    port,
    next,
    async pass(ms) {
      child.stdin.write(`${ms}\n`);
      await next("passed");
    },
    terminate: () => void child.kill("SIGTERM"),
    exited,
    complaints: () => complaints,
  };
}

/** Kills the servers that a test file left running. */
export function stopEchoes(): void {
  for (const child of running) child.kill("SIGKILL");
}
