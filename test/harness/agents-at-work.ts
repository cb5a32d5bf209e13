import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { type AgentAtWork, type AgentAtWorkOptions, agentAtWork } from "./agent-service.ts";
import { realTools } from "./assignment.ts";
import { stopAll } from "./server.ts";

/** Returns a starter of agents with its own tools, which stops the agents after each test. */
export function agentsAtWork() {
  let tools: RunnerTools;
  const atWork: AgentAtWork[] = [];
  beforeAll(async () => {
    tools = await realTools();
  });
  afterEach(async () => {
    for (const { assignment, ended } of atWork.splice(0)) {
      assignment.lease.interrupt("lost");
      await ended;
    }
  });
  afterAll(stopAll);
  return {
    /** Returns the folder of their environments. */
    workspaces: () => tools.workspaces,
    async start(options: AgentAtWorkOptions): Promise<AgentAtWork> {
      const agent = await agentAtWork(tools, options);
      atWork.push(agent);
      return agent;
    },
  };
}

/** Counts the reports that an agent is waiting for input. */
export function waits(agent: AgentAtWork): number {
  return agent.states().filter((state) => state === "WAITING").length;
}
