import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { type Approval, ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { usePerson, Who } from "../../api/person.tsx";
import { type Column, DataTable, type Selection } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { useOwnRole } from "../organization/own-role.ts";
import { ApprovalCard } from "./ApprovalCard.tsx";
import { ApprovalLink, ApprovalOf } from "./ApprovalLink.tsx";
import { approvalState, approvalTitle, KINDS } from "./approval-state.ts";
import { DecideSeveral } from "./DecideSeveral.tsx";
import { whyNotTogether } from "./together.ts";

const ENDED = [ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.CANCELLED];

/** The inbox: pending approvals, of which several can be decided at once, and decided ones. */
export function Approvals() {
  const { tab = "waiting" } = useSearch({ from: "/approvals" });
  const states = tab === "ended" ? ENDED : [ApprovalState.PENDING];
  const approvals = useInfiniteQuery(
    ApprovalService.method.listApprovals,
    { ...FIRST_PAGE, filter: { states } },
    BY_PAGE,
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
          const table = { rows, ...moreOf(approvals) };
          if (tab !== "ended") return <Waiting {...table} />;
          if (rows.length === 0) return <NoApproval title="No approvals have been decided yet." />;
          return <ApprovalTable {...table} hasStates />;
        }}
      </Loaded>
    </Page>
  );
}

function NoApproval({ title }: { readonly title: string }) {
  return (
    <Empty title={title}>
      <p>
        Agents ask before they run commands, workflows ask at approval steps, and pushes ask if a policy
        requires it. Approvals that you can decide appear here.
      </p>
    </Empty>
  );
}

interface ApprovalTableProps {
  readonly rows: readonly Approval[];
  readonly onMore: (() => void) | undefined;
  readonly isLoadingMore: boolean;
  readonly selection?: Selection<Approval>;
  /** True if the states of the approvals differ. */
  readonly hasStates?: boolean;
}

/** Shows the pending approvals, which can be selected and decided together. */
function Waiting(table: ApprovalTableProps) {
  const { user } = usePerson();
  const role = useOwnRole(user?.organizationId ?? "", user?.id ?? "");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  /** A snapshot from when the dialog opened: exactly what is shown is decided. */
  const [deciding, setDeciding] = useState<readonly Approval[]>([]);
  const whyNot = (approval: Approval) =>
    whyNotTogether(approval, { userId: user?.id ?? "", mayBeAdministrator: role !== "member" });
  // Approvals that somebody else has decided in the meantime are no longer in the rows.
  const together = table.rows.filter((row) => chosen.has(row.id) && whyNot(row) === undefined);
  return (
    <>
      {table.rows.length === 0 ? (
        <NoApproval title="No approvals are pending." />
      ) : (
        <>
          <div className="row table-tools">
            <Button size="xs" disabled={together.length === 0} onClick={() => setDeciding(together)}>
              Decide {together.length > 0 ? together.length.toLocaleString() : "several"}
            </Button>
            <span className="dim small" role="status">
              {together.length === 0
                ? "Select rows to decide several at once."
                : `${together.length.toLocaleString()} selected.`}
            </span>
          </div>
          <ApprovalTable
            {...table}
            selection={{ chosen, nameOf: approvalTitle, whyNot, onChange: setChosen }}
          />
        </>
      )}
      {deciding.length > 0 && (
        <DecideSeveral
          approvals={deciding}
          onClose={() => {
            setDeciding([]);
            setChosen(new Set());
          }}
        />
      )}
    </>
  );
}

const STATE: Column<Approval> = {
  head: "State",
  cell: ({ state }) => {
    const [tone, word] = approvalState(state);
    return <State tone={tone} word={word} />;
  },
  isExtra: true,
};

function ApprovalTable({ hasStates = false, ...table }: ApprovalTableProps) {
  return (
    <DataTable
      label="Approvals"
      keyOf={({ id }) => id}
      {...table}
      columns={[
        {
          head: "What",
          cell: (approval) => <ApprovalLink approval={approval} />,
        },
        { head: "Source", cell: (approval) => <ApprovalOf approval={approval} /> },
        { head: "Kind", cell: ({ kind }) => KINDS[kind], isExtra: true },
        ...(hasStates ? [STATE] : []),
        { head: "Requested by", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
        { head: "Requested", cell: ({ createdAt }) => <Ago at={createdAt} /> },
      ]}
    />
  );
}

/** Shows one approval. */
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
