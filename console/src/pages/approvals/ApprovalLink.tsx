import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import { runTitle } from "../agents/run-state.ts";
import { approvalTitle } from "./approval-state.ts";

/** Milliseconds for which the name of a run is taken as it was read. */
const NAME_MS = 600_000;

/** The title of an approval in a list, which leads to its page. */
export function ApprovalLink({ approval }: { readonly approval: Approval }) {
  return (
    <Link className="row-link anywhere" to="/approvals/$approvalId" params={{ approvalId: approval.id }}>
      {approvalTitle(approval)}
    </Link>
  );
}

/** Names the run or the execution that asks, and leads to it. */
export function ApprovalOf({ approval }: { readonly approval: Approval }) {
  const { agentExecutionId = "", environmentId = "", workflowExecutionId = "" } = approval.asker ?? {};
  // A push is asked for by a person, of an environment: its run is the one that worked there.
  const filter =
    agentExecutionId === "" ? { environmentIds: [environmentId] } : { agentExecutionIds: [agentExecutionId] };
  const { data } = useQuery(
    AgentService.method.listAgentExecutions,
    { filter, pagination: { pageSize: 1 } },
    {
      enabled: agentExecutionId !== "" || environmentId !== "",
      staleTime: NAME_MS,
      refetchInterval: false,
      retry: false,
    },
  );
  const [run] = data?.agentExecutions ?? [];
  if (run) {
    return (
      <Link to="/agents/$runId" params={{ runId: run.id }}>
        {runTitle(run)}
      </Link>
    );
  }
  if (workflowExecutionId === "") return null;
  return (
    <Link to="/executions/$executionId" params={{ executionId: workflowExecutionId }}>
      an execution
    </Link>
  );
}
