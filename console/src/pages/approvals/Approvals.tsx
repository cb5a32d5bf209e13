import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { ApprovalCard } from "./ApprovalCard.tsx";
import { ApprovalLink, ApprovalOf } from "./ApprovalLink.tsx";
import { approvalState, approvalTitle, KINDS } from "./approval-state.ts";

const PAGE = 50;

const ENDED = [ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.CANCELLED];

/** The inbox: what waits for a decision, and what has been decided. */
export function Approvals() {
  const { tab = "waiting" } = useSearch({ from: "/approvals" });
  const states = tab === "ended" ? ENDED : [ApprovalState.PENDING];
  const approvals = useInfiniteQuery(
    ApprovalService.method.listApprovals,
    { pagination: { pageSize: PAGE }, filter: { states } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Page title="Approvals">
      <TabLinks
        current={tab}
        tabs={[
          ["waiting", "Waiting"],
          ["ended", "Decided and ended"],
        ]}
      />
      <Loaded reading={approvals}>
        {({ pages }) => {
          const rows = pages.flatMap(({ approvals }) => approvals);
          if (rows.length === 0) {
            return (
              <Empty
                title={tab === "ended" ? "Nothing has been decided yet." : "Nothing waits for a decision."}
              >
                <p>
                  Agents ask before they run commands, workflows where they have an approval step, and pushes
                  where a policy says so. What you may decide appears here.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Approvals"
              rows={rows}
              keyOf={({ id }) => id}
              onMore={approvals.hasNextPage ? () => void approvals.fetchNextPage() : undefined}
              isLoadingMore={approvals.isFetchingNextPage}
              columns={[
                {
                  head: "What",
                  cell: (approval) => <ApprovalLink approval={approval} />,
                },
                { head: "Of", cell: (approval) => <ApprovalOf approval={approval} /> },
                { head: "Kind", cell: ({ kind }) => KINDS[kind], isExtra: true },
                {
                  head: "State",
                  cell: ({ state }) => {
                    const [tone, word] = approvalState(state);
                    return <State tone={tone} word={word} />;
                  },
                  isExtra: true,
                },
                { head: "For", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
                { head: "Asked", cell: ({ createdAt }) => <Ago at={createdAt} /> },
              ]}
            />
          );
        }}
      </Loaded>
    </Page>
  );
}

/** One approval. */
export function ApprovalPage() {
  const { approvalId } = useParams({ from: "/approvals/$approvalId" });
  const reading = useQuery(ApprovalService.method.getApproval, { approvalId });
  const approval = reading.data?.approval;
  return (
    <Page
      title={approval ? approvalTitle(approval) : "Approval"}
      facts={<Link to="/approvals">All approvals</Link>}
    >
      <Loaded reading={reading}>
        {({ approval }) => (approval ? <ApprovalCard approval={approval} /> : null)}
      </Loaded>
    </Page>
  );
}
