import { join } from "node:path";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import type { RunningAgent, RunningAgentOptions } from "./fake-agent-service.ts";
import { ROOT } from "./program.ts";
import { countWaits, runningAgents } from "./running-agents.ts";

/** The scripted agent of the Agent Client Protocol. */
export const ACP_AGENT = join(ROOT, "test/harness/acp-agent.ts");

/** Returns the line that has the scripted agent call a method of its client. */
export const call = (method: string, params: object) => `call ${JSON.stringify([method, params])}`;
/** Returns the line that has the scripted agent tell of an update. */
export const update = (change: object) => `update ${JSON.stringify(change)}`;

/** Returns all blocks of an agent so far. */
export const blocksOf = (agent: RunningAgent) => agent.reports.flatMap(({ blocks }) => blocks);

/** Returns a starter of agents as {@link runningAgents} does, and of the scripted one. */
export function scriptedAcpAgents() {
  const { start, workspaces } = runningAgents();
  let asked = 0;
  return {
    start,
    /** @param options those of the scripted agent */
    scripted: (options: object = {}, more: Partial<RunningAgentOptions> = {}) =>
      start({
        command: [
          process.execPath,
          "--disable-warning=ExperimentalWarning",
          ACP_AGENT,
          JSON.stringify(options),
        ],
        form: AgentForm.ACP,
        ...more,
      }),
    /** Returns the folder of the agents' repositories. */
    tree: () => join(workspaces(), "01900000-0000-7000-8000-00000000000d", "tree"),
    /** Says lines to an agent as the input `input N`, and returns what it answered once it waits again. */
    async ask(agent: RunningAgent, ...lines: string[]): Promise<string[]> {
      await agent.until(() => countWaits(agent) > 0);
      const [waits, before] = [countWaits(agent), agent.output().length];
      asked++;
      agent.say(`input ${asked}`, lines.join("\n"));
      await agent.until(() => countWaits(agent) > waits);
      return agent.output().slice(before);
    },
    /** Returns the N of the last input. */
    lastInput: () => asked,
  };
}
