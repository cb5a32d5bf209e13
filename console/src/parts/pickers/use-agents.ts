import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import type { Agent } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { transport } from "../../api/server.tsx";

const service = createClient(AgentService, transport);

/** Reads all agents, page by page: the contract has no search for them. */
export function useAgents() {
  return useQuery({
    queryKey: ["agents", { serviceName: AgentService.typeName }],
    async queryFn({ signal }) {
      const agents: Agent[] = [];
      let token = "";
      do {
        const page = await service.listAgents({ pagination: { pageSize: 100, token } }, { signal });
        agents.push(...page.agents);
        token = page.pagination?.nextToken ?? "";
      } while (token !== "");
      return agents;
    },
  });
}
