import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { DataTable } from "../parts/DataTable.tsx";
import { Details } from "../parts/Details.tsx";
import { Loaded } from "../parts/Loaded.tsx";
import { loadedPart } from "../parts/loaded-part.tsx";
import { Empty, Page, Section } from "../parts/Page.tsx";
import { Ago } from "../parts/Time.tsx";
import { RunTable } from "./agents/RunTable.tsx";
import { ApprovalLink, ApprovalOf } from "./approvals/ApprovalLink.tsx";
import { KINDS } from "./approvals/approval-state.ts";
import { GetStarted } from "./home/GetStarted.tsx";
import { RunnersSection } from "./home/RunnersSection.tsx";
import { RunningExecutions } from "./home/RunningExecutions.tsx";
import { useIsEmpty } from "./home/use-is-empty.ts";

/** Loaded on demand: the contract of workflows would make the console's first load too large. */
const Week = loadedPart(async () => (await import("./home/Week.tsx")).Week, {
  failed: () => (
    <p className="dim">
      This could not be loaded because the server did not answer. Open it again in a moment.
    </p>
  ),
});

/** Rows of each list; the list's own page has all. */
const ROWS = 10;

/** Shows what waits for the person, what runs now, what has failed, and the state of the runners. */
export function Home() {
  const isEmpty = useIsEmpty();
  return (
    <Page title="Home">
      {isEmpty && <GetStarted />}
      <Waiting />
      <Runs
        title="Runs waiting for input"
        phases={[Phase.WAITING_FOR_INPUT]}
        empty="No agent is waiting for you."
        hint="A run appears here when its turn has ended."
      />
      <Runs
        title="Runs in progress"
        phases={[Phase.PENDING, Phase.RUNNING]}
        empty="No run is in progress."
        hint="Start an agent on the Agents page."
      />
      <RunningExecutions />
      <Details className="section" summary="Failed executions and the last 7 days">
        <Week />
      </Details>
      <RunnersSection />
    </Page>
  );
}

function Waiting() {
  const approvals = useQuery(ApprovalService.method.listApprovals, {
    pagination: { pageSize: ROWS },
    filter: { states: [ApprovalState.PENDING] },
  });
  return (
    <Section title="Approvals" more={<Link to="/approvals">All approvals</Link>}>
      <Loaded reading={approvals} lines={2}>
        {({ approvals }) =>
          approvals.length === 0 ? (
            <Empty title="No approvals are pending." />
          ) : (
            <DataTable
              label="Pending approvals"
              rows={approvals}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: "What",
                  cell: (approval) => <ApprovalLink approval={approval} />,
                },
                { head: "Source", cell: (approval) => <ApprovalOf approval={approval} /> },
                { head: "Kind", cell: ({ kind }) => KINDS[kind], isExtra: true },
                { head: "Requested", cell: ({ createdAt }) => <Ago at={createdAt} /> },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

function Runs({
  title,
  phases,
  empty,
  hint,
}: {
  readonly title: string;
  readonly phases: readonly Phase[];
  readonly empty: string;
  readonly hint: string;
}) {
  const runs = useQuery(AgentService.method.listAgentExecutions, {
    pagination: { pageSize: ROWS },
    filter: { statusPhases: [...phases] },
  });
  return (
    <Section title={title} more={<Link to="/agents">All runs</Link>}>
      <Loaded reading={runs} lines={2}>
        {({ agentExecutions }) =>
          agentExecutions.length === 0 ? (
            <Empty title={empty}>
              <p>{hint}</p>
            </Empty>
          ) : (
            <RunTable label={title} rows={agentExecutions} />
          )
        }
      </Loaded>
    </Section>
  );
}
