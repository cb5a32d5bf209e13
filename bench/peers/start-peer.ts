import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import packageJson from "../../package.json" with { type: "json" };

const root = join(import.meta.dirname, "../..");

/** The servers to compare: the project's server with and without group commits, and the peers in bench/peers. */
export type PeerName =
  | "ours"
  | "one-commit-each"
  | "ceiling"
  | "fastify"
  | "connect-node"
  | "grpc-js"
  | "pg-ceiling"
  | "pg-connect-node";

export interface Peer {
  readonly name: PeerName;
  readonly url: string;
  readonly dataDir: string;
  /** Its database; undefined for SQLite in the data folder. */
  readonly databaseUrl: string | undefined;
  readonly process: ChildProcess;
  /** Truncates its access log, which is a file for all peers. */
  clearLog(): void;
  stop(): Promise<void>;
}

const LOG_FILE = "access.log";

/** The Node flags of `npm start`. */
const OWN_FLAGS = startFlags(packageJson.scripts.start);
const OWN: readonly PeerName[] = ["ours", "one-commit-each"];

export interface StartOptions {
  /** Node flags for profiling. */
  readonly nodeFlags?: readonly string[];
  /** PostgreSQL instead of SQLite in the data folder. */
  readonly databaseUrl?: string;
}

/** Starts a peer on its own data folder. */
export async function startPeer(
  name: PeerName,
  dataDir: string,
  { nodeFlags = [], databaseUrl }: StartOptions = {},
): Promise<Peer> {
  const program =
    name === "ours"
      ? [
          "bin/chartroom.js",
          "serve",
          ...["--port", "0", "--log-level", "info", "--data-dir", dataDir],
          ...(databaseUrl ? ["--database-url", databaseUrl] : []),
        ]
      : [`bench/peers/${name}.ts`, dataDir, ...(databaseUrl ? [databaseUrl] : [])];
  const logFile = openSync(join(dataDir, LOG_FILE), "a");
  const ownFlags = OWN.includes(name) ? OWN_FLAGS : [];
  const child = spawn(process.execPath, [...ownFlags, ...nodeFlags, ...program], {
    cwd: root,
    // All calls use one token, so rate limits are off.
    env: { PATH: process.env.PATH, NODE_ENV: "production", CHARTROOM_RATE_LIMITS: "off" },
    stdio: ["ignore", "pipe", logFile],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}:\n${tail(dataDir)}`)));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const ready = /^Chartroom is ready at (\S+)$/.exec(line)?.[1];
      if (ready) resolve(ready);
    });
  });
  return {
    name,
    url,
    dataDir,
    databaseUrl,
    process: child,
    clearLog: () => ftruncateSync(logFile),
    async stop() {
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await once(child, "exit");
      }
      closeSync(logFile);
    },
  };
}

function startFlags(script: string): string[] {
  const flags = /\bexec node (.*) bin\/chartroom\.js serve$/.exec(script)?.[1];
  if (flags === undefined) throw new Error(`the bench does not know what this tells Node: ${script}`);
  return flags.split(" ");
}

/** Returns the end of a peer's standard error. */
function tail(dataDir: string): string {
  return readFileSync(join(dataDir, LOG_FILE), "utf8").split("\n").slice(-20).join("\n");
}
