import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { COMPILE_CACHE, RESOLUTION_CACHE } from "./compile-cache.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What the host is asked for: to run a command, or to stop the service that an earlier request started. */
export type HostRequest =
  | {
      readonly id: number;
      readonly args: readonly string[];
      readonly env: Environment;
      readonly input: string;
      /** The file to which a service appends its log; left out where nobody reads it. */
      readonly logFile?: string;
    }
  | { readonly id: number; readonly stop: number };

/** The result of a command, of which a service may be running. */
export interface HostAnswer {
  readonly id: number;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The process that runs commands and servers for this worker's test files; it ends with the worker. */
interface Host {
  ask(request: (id: number) => HostRequest): Promise<HostAnswer>;
}

/** Ends a program that uses what Node or a package is about to remove. */
export const STRICT = ["--throw-deprecation"];

let host: Host | undefined;
let asked = 0;

/** Runs a command in the process of the host, which loads modules once for all of them. */
export function hostCommand(
  args: readonly string[],
  env: Environment,
  more: { readonly input?: string; readonly logFile?: string } = {},
): Promise<HostAnswer> {
  host ??= startHost(env);
  return host.ask((id) => ({ id, args, env, input: "", ...more }));
}

/** A server or a runner in the process of the host. */
export interface HostedService {
  /** What it printed before it was ready. */
  readonly output: string;
  stop(): Promise<void>;
}

/**
 * Starts a service among others in the process of the host.
 *
 * @param args the command, serve or runner, and its arguments
 * @param logFile the file to which it appends its log
 */
export async function hostService(
  args: readonly string[],
  env: Environment,
  logFile: string,
): Promise<HostedService> {
  const started = await hostCommand(args, env, { logFile });
  if (started.code !== 0) throw new Error(started.stderr);
  return {
    output: started.stdout,
    async stop() {
      const stopped = await host?.ask((id) => ({ id, stop: started.id }));
      if (stopped && stopped.code !== 0) throw new Error(stopped.stderr);
    },
  };
}

function startHost(env: Environment): Host {
  const child: ChildProcess = fork(join(import.meta.dirname, "server-host.ts"), {
    env: { ...env, ...COMPILE_CACHE },
    execArgv: [...STRICT, ...RESOLUTION_CACHE],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  child.unref();
  const waiting = new Map<number, PromiseWithResolvers<HostAnswer>>();
  const end = (id: number) => {
    const waiter = waiting.get(id);
    waiting.delete(id);
    // A worker that has nothing else to do waits for answers, and for nothing else.
    if (waiting.size === 0) child.channel?.unref();
    return waiter;
  };
  child.on("message", (answer: HostAnswer) => end(answer.id)?.resolve(answer));
  child.once("exit", (code, signal) => {
    host = undefined;
    for (const id of waiting.keys()) {
      end(id)?.reject(new Error(`the process of the servers ended with ${code ?? signal}`));
    }
  });
  return {
    ask(request) {
      asked += 1;
      const waiter = Promise.withResolvers<HostAnswer>();
      waiting.set(asked, waiter);
      child.channel?.ref();
      child.send(request(asked));
      return waiter.promise;
    },
  };
}
