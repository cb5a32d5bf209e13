import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import type { AgentExecution } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import { runTitle } from "../agents/run-state.ts";
import { approvalTitle } from "./approval-state.ts";

/** Milliseconds for which the name of a run is cached. */
const NAME_MS = 600_000;

/** The title of an approval in a list, linked to its page. */
export function ApprovalLink({ approval }: { readonly approval: Approval }) {
  return (
    <Link
      className="row-link request anywhere"
      to="/approvals/$approvalId"
      params={{ approvalId: approval.id }}
    >
      {approvalTitle(approval)}
    </Link>
  );
}

/** Reads the run that asks or, for a push, that worked in the environment; undefined when there is no run. */
function useRunOf({ asker }: Approval): AgentExecution | undefined {
  const { agentExecutionId = "", environmentId = "" } = asker ?? {};
  // A person requests a push of an environment: its run is the one that worked there.
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
  return data?.agentExecutions[0];
}

/** Names the run or the execution that asks, with a link to it. */
export function ApprovalOf({ approval }: { readonly approval: Approval }) {
  const run = useRunOf(approval);
  const workflowExecutionId = approval.asker?.workflowExecutionId ?? "";
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

/** Links from a push to the diff of its run's changes; nothing when the person may not read the run. */
export function ChangesOf({ approval }: { readonly approval: Approval }) {
  const run = useRunOf(approval);
  if (!run) return null;
  return (
    <>
      <dt>Changes</dt>
      <dd>
        <Link to="/agents/$runId" params={{ runId: run.id }} search={{ tab: "changes" }}>
          the diff of {runTitle(run)}
        </Link>
      </dd>
    </>
  );
}
