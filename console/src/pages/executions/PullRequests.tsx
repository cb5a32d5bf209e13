import { useInfiniteQuery } from "@connectrpc/connect-query";
import { PullRequest_State as PullRequestState } from "#gen/service/v1/agent_pb.js";
import {
  PullRequestChecks as Checks,
  type FollowedPullRequest,
  PullRequestFollowing as Following,
} from "#gen/service/v1/pull_request_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";

const PAGE = 50;

const STATES: Readonly<Partial<Record<PullRequestState, readonly [Tone, string]>>> = {
  [PullRequestState.OPEN]: ["running", "Open"],
  [PullRequestState.MERGED]: ["done", "Merged"],
  [PullRequestState.CLOSED]: ["stopped", "Closed"],
};

const CHECKS: Readonly<Record<Checks, readonly [Tone, string]>> = {
  [Checks.UNSPECIFIED]: ["waiting", "Unknown"],
  [Checks.NONE]: ["waiting", "None"],
  [Checks.PENDING]: ["running", "Running"],
  [Checks.FAILED]: ["failed", "Failed"],
  [Checks.PASSED]: ["done", "Passed"],
};

interface PullRequestsProps {
  /** The execution or the agent run whose pull requests are shown. */
  readonly executionId?: string;
  readonly agentExecutionId?: string;
}

/** Lists the pull requests that an execution or a run opened, with their states at their hosts. */
export function PullRequests({ executionId, agentExecutionId }: PullRequestsProps) {
  const pullRequests = useInfiniteQuery(
    WorkflowService.method.listPullRequests,
    {
      filter: {
        workflowExecutionIds: executionId ? [executionId] : [],
        agentExecutionIds: agentExecutionId ? [agentExecutionId] : [],
      },
      pagination: { pageSize: PAGE },
    },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Loaded reading={pullRequests}>
      {({ pages }) => {
        const rows = pages.flatMap(({ pullRequests }) => pullRequests);
        if (rows.length === 0) {
          return (
            <Empty title="No pull requests have been opened.">
              <p>Pull requests opened here are tracked until they are merged or closed.</p>
            </Empty>
          );
        }
        return (
          <DataTable
            label="Pull requests"
            rows={rows}
            keyOf={({ id }) => id}
            onMore={pullRequests.hasNextPage ? () => void pullRequests.fetchNextPage() : undefined}
            isLoadingMore={pullRequests.isFetchingNextPage}
            columns={[
              { head: "Pull request", cell: (row) => <Title row={row} /> },
              {
                head: "State",
                cell: ({ pullRequest }) => {
                  const [tone, word] = STATES[pullRequest?.state ?? 0] ?? ["waiting", "Unknown"];
                  return <State tone={tone} word={pullRequest?.draft ? `${word}, a draft` : word} />;
                },
              },
              {
                head: "Checks",
                cell: ({ checks }) => {
                  const [tone, word] = CHECKS[checks];
                  return <State tone={tone} word={word} />;
                },
              },
              {
                head: "Branch",
                cell: ({ pullRequest }) => <code>{pullRequest?.fromBranch}</code>,
                isExtra: true,
              },
              { head: "Last checked", cell: (row) => <Seen row={row} />, isExtra: true },
            ]}
          />
        );
      }}
    </Loaded>
  );
}

/** The title as a link to the page at the host; only web pages are links. */
function Title({ row: { pullRequest } }: { readonly row: FollowedPullRequest }) {
  const label = pullRequest?.title || pullRequest?.url || "Pull request";
  if (!/^https?:\/\//.test(pullRequest?.url ?? "")) return <strong>{label}</strong>;
  return (
    <a className="row-link" href={pullRequest?.url} target="_blank" rel="noopener noreferrer nofollow">
      {label}
    </a>
  );
}

function Seen({ row: { following, problem, seenAt } }: { readonly row: FollowedPullRequest }) {
  if (following === Following.STOPPED) {
    return <span className="tone-failed">{problem || "No longer followed"}</span>;
  }
  return <Ago at={seenAt} />;
}
