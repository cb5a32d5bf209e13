import { type ChildProcessByStdio, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { StartRunner } from "./site.ts";

/** Number of slots of each runner process. */
export const IDLE_SLOTS = 8;
export const REAL_SLOTS = 2;

/** Starts a runner that reports everything as done, see idle-runner.ts. It polls after `begin`. */
export const startIdleRunner: StartRunner = async (server, stateDir, exchangeTokens) => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "idle-runner.ts")], {
    env: {
      PATH: process.env.PATH,
      SERVER: server.url,
      STATE_DIR: stateDir,
      EXCHANGE_TOKENS: exchangeTokens.join(","),
      SLOTS: String(Math.ceil(IDLE_SLOTS / exchangeTokens.length)),
    },
    stdio: ["pipe", "inherit", "pipe"],
  });
  await said(child, "the runner takes work");
  return { process: child, begin: () => void child.stdin.end("begin\n") };
};

/** Starts the built-in runner, as an operator does. */
export const startRealRunner: StartRunner = async (server, stateDir, [exchangeToken]) => {
  const settings = ["--server", server.url, "--state-dir", stateDir, "--slots", String(REAL_SLOTS)];
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "../bin/chartroom.js"), "runner", ...settings, "--allow-file-remotes"],
    {
      env: {
        PATH: process.env.PATH,
        CHARTROOM_EXCHANGE_TOKEN: exchangeToken,
        // The cost of isolation is measured separately (docs/isolation.md).
        CHARTROOM_ISOLATION: "none",
      },
      stdio: ["ignore", "inherit", "pipe"],
    },
  );
  await said(child, "the runner takes work");
  return { process: child };
};

/** Resolves once a runner logs these words. Prints its log lines of other levels than info. */
function said(child: ChildProcessByStdio<Writable | null, null, Readable>, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`a runner ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.includes(`"msg":"${words}"`)) resolve();
      if (!line.includes('"level":"info"')) process.stderr.write(`${line}\n`);
    });
  });
}
