import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";

/** What the host is asked for: to start a server, or to stop the one that an earlier request started. */
export type HostRequest =
  | {
      readonly id: number;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string | undefined>>;
    }
  | { readonly id: number; readonly stop: number };

/** What the host answers: the standard output of a started server, or why it did not start. */
export type HostAnswer =
  | { readonly id: number; readonly output: string }
  | { readonly id: number; readonly error: string };

/** The process that runs the servers of this worker's test files; it ends with the worker. */
interface Host {
  ask(request: (id: number) => HostRequest): Promise<{ readonly id: number; readonly output: string }>;
}

const RESOLUTION_CACHE = new URL("../../bin/resolution-cache.js", import.meta.url).href;
/** The folder in which the servers and the workers keep what they compile. */
const COMPILE_CACHE = join(import.meta.dirname, "../../node_modules/.cache/compile");

let host: Host | undefined;
let asked = 0;

/**
 * Starts a server among others in one process, which loads the server's modules once for all of them.
 *
 * @param args of the command serve
 */
export async function hostServer(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[],
): Promise<{ readonly output: string; stop(): Promise<void> }> {
  host ??= startHost(env, execArgv);
  const { ask } = host;
  const started = await ask((id) => ({ id, args, env }));
  return {
    output: started.output,
    async stop() {
      await ask((id) => ({ id, stop: started.id }));
    },
  };
}

function startHost(env: Readonly<Record<string, string | undefined>>, execArgv: readonly string[]): Host {
  const child: ChildProcess = fork(join(import.meta.dirname, "server-host.ts"), {
    env: { ...env, NODE_COMPILE_CACHE: COMPILE_CACHE },
    execArgv: [...execArgv, "--import", RESOLUTION_CACHE],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  child.unref();
  const waiting = new Map<number, PromiseWithResolvers<{ readonly id: number; readonly output: string }>>();
  const end = (id: number) => {
    const waiter = waiting.get(id);
    waiting.delete(id);
    // A worker that has nothing else to do waits for answers, and for nothing else.
    if (waiting.size === 0) child.channel?.unref();
    return waiter;
  };
  child.on("message", (answer: HostAnswer) => {
    const waiter = end(answer.id);
    if ("error" in answer) waiter?.reject(new Error(answer.error));
    else waiter?.resolve(answer);
  });
  child.once("exit", (code, signal) => {
    host = undefined;
    for (const id of waiting.keys()) {
      end(id)?.reject(new Error(`the process of the servers ended with ${code ?? signal}`));
    }
  });
  return {
    ask(request) {
      asked += 1;
      const waiter = Promise.withResolvers<{ readonly id: number; readonly output: string }>();
      waiting.set(asked, waiter);
      child.channel?.ref();
      child.send(request(asked));
      return waiter.promise;
    },
  };
}
