import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../test/harness/free-port.ts";
import { temporaryFolder } from "../../test/harness/server.ts";
import type { Figures } from "../figures.ts";
import { processorMs } from "../machine.ts";
import type { BenchCluster } from "../postgres/cluster.ts";

/** Returns what the machine lacks for the queues, with instructions to install it. */
export function missingForQueues(): string[] {
  const lacks: string[] = [];
  if (!existsSync(join(import.meta.dirname, "node_modules/bullmq"))) {
    lacks.push("packages of bench/queues: npm ci --ignore-scripts --prefix bench/queues");
  }
  try {
    execFileSync("redis-server", ["--version"], { stdio: "pipe" });
  } catch {
    lacks.push("redis-server: install Debian's package redis-server");
  }
  return lacks;
}

/** Returns the versions of the queues and of Redis, for the page. */
export function queueVersions(): string {
  const redis = /v=(\S+)/.exec(execFileSync("redis-server", ["--version"], { encoding: "utf8" }))?.[1];
  const versionOf = (name: string) =>
    execFileSync("node", ["-p", `require("./node_modules/${name}/package.json").version`], {
      cwd: import.meta.dirname,
      encoding: "utf8",
    }).trim();
  return `graphile-worker ${versionOf("graphile-worker")}, bullmq ${versionOf("bullmq")}, Redis ${redis}`;
}

/** Measures a queue on PostgreSQL, in its own database. */
export async function graphileWorker(
  cluster: BenchCluster,
  database: string,
  jobs: number,
): Promise<Figures> {
  await cluster.run("postgres", `create database ${database}`);
  const env = { DATABASE_URL: cluster.urlOf(database) };
  return measurePeer("graphile-worker", env, jobs, () => cluster.processorMs());
}

/** Measures a queue on Redis that forces its log to disk with every change. */
export async function bullmq(jobs: number): Promise<Figures> {
  const port = await freePort();
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", temporaryFolder()];
  const durable = ["--appendonly", "yes", "--appendfsync", "always"];
  const redis = spawn("redis-server", [...settings, ...durable], { stdio: "ignore" });
  try {
    await untilListening(port);
    return await measurePeer("bullmq", { REDIS_PORT: String(port) }, jobs, () => processorMs(redis.pid));
  } finally {
    redis.kill("SIGTERM");
    if (redis.exitCode === null) await once(redis, "exit");
  }
}

async function untilListening(port: number): Promise<void> {
  for (let left = 100; left > 0; left--) {
    try {
      const ping = ["-p", String(port), "ping"];
      if (execFileSync("redis-cli", ping, { stdio: "pipe" }).toString().includes("PONG")) return;
    } catch {
      // Redis is not ready yet.
    }
    await delay(50);
  }
  throw new Error("redis-server did not start");
}

async function measurePeer(
  name: string,
  env: Readonly<Record<string, string>>,
  jobs: number,
  databaseMs: () => number,
): Promise<Figures> {
  const peer = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    env: { PATH: process.env.PATH, JOBS: String(jobs), ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const says = sayings(peer);
  await says("ready");
  const [before, databaseBefore, began] = [processorMs(peer.pid), databaseMs(), performance.now()];
  peer.stdin.write("begin\n");
  await says("done");
  const tookMs = performance.now() - began;
  const [spentMs, databaseSpentMs] = [processorMs(peer.pid) - before, databaseMs() - databaseBefore];
  peer.stdin.end();
  await once(peer, "exit");
  return {
    "jobs a second": (jobs / tookMs) * 1000,
    "processor time of the queue a job, ms": spentMs / jobs,
    "processor time of its database a job, ms": databaseSpentMs / jobs,
  };
}

/** Returns a function that waits until the peer has printed a word. */
function sayings(peer: ChildProcess): (word: string) => Promise<void> {
  const heard = new Map<string, PromiseWithResolvers<void>>();
  const wordOf = (word: string) => {
    const known = heard.get(word) ?? Promise.withResolvers<void>();
    heard.set(word, known);
    return known;
  };
  if (peer.stdout) createInterface({ input: peer.stdout }).on("line", (line) => wordOf(line).resolve());
  peer.once("exit", (code) => wordOf("done").reject(new Error(`a peer ended with ${code}`)));
  wordOf("done").promise.catch(() => undefined);
  return (word) => Promise.race([wordOf(word).promise, wordOf("done").promise]);
}
