import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { realTools } from "./assignment.ts";
import { type RunningAgent, type RunningAgentOptions, startRunningAgent } from "./fake-agent-service.ts";
import { stopAll } from "./server.ts";

/** Returns a starter of agents with its own tools, which stops the agents after each test. */
export function runningAgents() {
  let tools: RunnerTools;
  const running: RunningAgent[] = [];
  beforeAll(async () => {
    tools = await realTools();
  });
  afterEach(async () => {
    for (const { assignment, ended } of running.splice(0)) {
      assignment.lease.interrupt("lost");
      await ended;
    }
  });
  afterAll(stopAll);
  return {
    /** Returns the folder of their environments. */
    workspaces: () => tools.workspaces,
    async start(options: RunningAgentOptions): Promise<RunningAgent> {
      const agent = await startRunningAgent(tools, options);
      running.push(agent);
      return agent;
    },
  };
}

/** Counts the reports that an agent is waiting for input. */
export function countWaits(agent: RunningAgent): number {
  return agent.states().filter((state) => state === "WAITING").length;
}
