import { notBuilt, type Operation, page } from "./operation.ts";
import type { World } from "./world.ts";

const OF_ONE_RUN = [
  "GetAgentExecution",
  "StopAgentExecution",
  "DeleteAgentExecution",
  "WatchAgentExecution",
  "ListAgentInputs",
];
const UNDER_LEASE = {
  StreamInputs: {},
  ReportAgent: {},
  StartSubagent: { prompt: "look into the failing test" },
  StartStepAgent: {},
  GetStepAgent: {},
};

/** Agent runs, and what runners call for them. */
export const AGENT_OPERATIONS: Readonly<Record<string, Operation>> = {
  ...Object.fromEntries(
    OF_ONE_RUN.map((name) => [
      `AgentService/${name}`,
      notBuilt((world) => ({ agentExecutionId: world.agentExecution }), {
        agentExecutionId: "agentExecution",
      }),
    ]),
  ),
  "AgentService/ListAgentExecutions": notBuilt(() => page),
  "AgentService/ListAgents": notBuilt(() => page),
  ...Object.fromEntries(
    Object.entries(UNDER_LEASE).map(([name, request]) => [
      `AgentWorkService/${name}`,
      {
        ...notBuilt((world) => ({ leaseId: world.lease, fence: "1", ...request }), { leaseId: "lease" }),
        token: (world: World) => world.runnerToken,
      },
    ]),
  ),
};
