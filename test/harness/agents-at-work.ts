import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { type AgentAtWork, type AgentAtWorkOptions, agentAtWork } from "./agent-service.ts";
import { realTools } from "./assignment.ts";
import { stopAll } from "./server.ts";

/** The agents of a test file, over tools of its own. Those of a test end with it. */
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
    /** Folder of their environments. */
    workspaces: () => tools.workspaces,
    async start(options: AgentAtWorkOptions): Promise<AgentAtWork> {
      const agent = await agentAtWork(tools, options);
      atWork.push(agent);
      return agent;
    },
  };
}

/** How often the runner said that an agent waits for input. */
export function waits(agent: AgentAtWork): number {
  return agent.states().filter((state) => state === "WAITING").length;
}
