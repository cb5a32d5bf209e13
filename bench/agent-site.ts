import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type Answer, post } from "../test/harness/call.ts";
import {
  runCommand,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../test/harness/server.ts";
import { START_FLAGS } from "./start-flags.ts";

/** A server, a runner with slots for all agents, and the agent of bench/agent.sh. */
export interface AgentSite {
  readonly server: TestServer;
  readonly runner: ChildProcess;
  call(operation: string, body: object): Promise<Answer["body"]>;
  /** Starts runs, each in its own empty environment. Returns their ids once all of them wait for input. */
  startRuns(count: number): Promise<string[]>;
  close(): Promise<void>;
}

/** Number of concurrent callers of StartAgent. */
const STARTERS = 8;
const POLL_MS = 500;

export async function openAgentSite(
  agentSlots: number,
  logLevel = "warn",
  env: Readonly<Record<string, string>> = {},
  agentArgs: readonly string[] = [],
): Promise<AgentSite> {
  const NODE_OPTIONS = [START_FLAGS, env.NODE_OPTIONS ?? ""].join(" ").trim();
  const args = ["--log-level", logLevel, "--rate-limits", "off"];
  const server = await startServer({ args, env: { ...env, NODE_OPTIONS } });
  const call = async (operation: string, body: object) => {
    const answer = await post(server, operation, body);
    if (answer.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const command = JSON.stringify(["bash", join(import.meta.dirname, "agent.sh"), ...agentArgs]);
  const options = ["--command", command, "--form", "json-lines", "--default", "--data-dir", server.dataDir];
  const added = await runCommand(["agent", "add", "bench", ...options]);
  if (added.code !== 0) throw new Error(added.stderr);
  const { exchangeToken } = await call("RunnerService/CreateRunner", { name: "Runner" });
  const runner = await startRunner(server, exchangeToken, agentSlots);
  return {
    server,
    runner,
    call,
    async startRuns(count) {
      let left = count;
      const ids: string[] = [];
      const starter = async () => {
        while (left-- > 0) ids.push((await call("AgentService/StartAgent", {})).agentExecutionId);
      };
      await Promise.all(Array.from({ length: STARTERS }, starter));
      await allWait(call, ids);
      return ids;
    },
    async close() {
      runner.kill("SIGTERM");
      if (runner.exitCode === null) await once(runner, "exit");
      await server.stop();
      await stopAll();
    },
  };
}

async function startRunner(server: TestServer, exchangeToken: string, slots: number): Promise<ChildProcess> {
  const stateDir = join(temporaryFolder(), "runner");
  const settings = ["--server", server.url, "--state-dir", stateDir, "--agent-slots", String(slots)];
  const program = join(import.meta.dirname, "../bin/chartroom.js");
  const child = spawn(process.execPath, [program, "runner", ...settings], {
    env: { PATH: process.env.PATH, CHARTROOM_EXCHANGE_TOKEN: exchangeToken, CHARTROOM_ISOLATION: "none" },
    stdio: ["ignore", "inherit", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the runner ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.includes('"msg":"the runner takes work"')) resolve();
      if (!line.includes('"level":"info"')) process.stderr.write(`${line}\n`);
    });
  });
  return child;
}

async function allWait(call: AgentSite["call"], ids: readonly string[]): Promise<void> {
  for (let left = [...ids]; left.length > 0; await delay(POLL_MS)) {
    const agentExecutionIds = left.slice(0, 100);
    const filter = { agentExecutionIds, statusPhases: ["PHASE_WAITING_FOR_INPUT"] };
    const { agentExecutions } = await call("AgentService/ListAgentExecutions", {
      filter,
      pagination: { pageSize: 100 },
    });
    const waiting = new Set(agentExecutions.map(({ id }: { id: string }) => id));
    left = left.filter((id) => !waiting.has(id));
  }
}
