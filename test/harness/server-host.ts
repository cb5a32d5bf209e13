/** Runs servers beside each other in one process: the program that `hosted-server.ts` starts and sends messages to. */
import { Command } from "commander";
import { type RunningService, withSettings } from "../../src/commands/definitions/command-line.ts";
import { serve } from "../../src/commands/serve.ts";
import { readConfig, SETTINGS } from "../../src/config/config.ts";
import type { HostAnswer, HostRequest } from "./hosted-server.ts";

const running = new Map<number, RunningService>();

process.on("message", (request: HostRequest) => {
  const work = "stop" in request ? stop(request.stop) : start(request);
  work.then(
    (output) => answer({ id: request.id, output }),
    (error) => answer({ id: request.id, error: error.stack }),
  );
});
// The process that started this one has ended.
process.on("disconnect", () => process.exit());

function answer(message: HostAnswer): void {
  process.send?.(message);
}

/** Starts a server from the arguments and the environment of a process of its own; resolves with its standard output. */
async function start({ id, args, env }: Extract<HostRequest, { args: unknown }>): Promise<string> {
  const flags = withSettings(new Command("serve").exitOverride(), SETTINGS)
    .parse(args, { from: "user" })
    .opts();
  let output = "";
  const terminal = {
    env,
    print: (text: string) => {
      output += text;
    },
    input: process.stdin,
    output: process.stdout,
    isRoot: process.getuid?.() === 0,
    signalGroup: (groupId: number, signal: NodeJS.Signals | 0) => void process.kill(-groupId, signal),
    setExitCode: () => undefined,
  };
  running.set(id, await serve(readConfig(flags, env), terminal));
  return output;
}

async function stop(id: number): Promise<string> {
  await running.get(id)?.stop();
  running.delete(id);
  return "";
}
