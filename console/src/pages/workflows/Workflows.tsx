import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Workflow, WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { DataTable } from "../../parts/DataTable.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../parts/Page.tsx";
import { SearchField } from "../../parts/SearchField.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { ButtonLink } from "./ButtonLink.tsx";
import { Results } from "./Results.tsx";
import { triggerText, workflowState } from "./workflow-state.ts";
import "./workflows.css";

/** Workflows per page: as many as a filter of executions may name (contract). */
const PAGE = 25;

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

/** Days in which a failure counts as recent. */
const LATELY_DAYS = 7;
const DAY_MS = 86_400_000;

const TABS = [
  ["all", "All"],
  ["failing", "Failed lately"],
  ["disabled", "Disabled"],
] as const;

/** Lists the workflows of the organization with their most recent results. */
export function Workflows() {
  const { q = "", tab = "all" } = useSearch({ from: "/workflows" });
  const navigate = useNavigate();
  const [search] = useDebouncedValue(q, TYPED_MS);
  const since = useMemo(() => timestampFromDate(new Date(Date.now() - LATELY_DAYS * DAY_MS)), []);
  const workflows = useInfiniteQuery(
    WorkflowService.method.listWorkflows,
    {
      filter: {
        search,
        ...(tab === "failing" && { hasFailedExecutionSince: since }),
        ...(tab === "disabled" && { disabled: true }),
      },
      pagination: { pageSize: PAGE },
    },
    {
      pageParamKey: "pagination",
      placeholderData: keepPreviousData,
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  return (
    <Page
      title="Workflows"
      actions={
        <>
          <Link to="/executions">All executions</Link>
          <ButtonLink to="/workflows/new">
            <Icon name="plus" size={14} /> Create workflow
          </ButtonLink>
        </>
      }
    >
      <TabLinks current={tab} tabs={TABS} keep={["q"]} />
      <SearchField
        label="Search workflows"
        placeholder="Search names, descriptions and ids"
        className="search"
        value={q}
        onType={(typed) =>
          void navigate({ to: "/workflows", search: (before) => ({ ...before, q: typed }), replace: true })
        }
      />
      <Loaded reading={workflows}>
        {({ pages }) =>
          pages[0]?.workflows.length === 0 ? (
            <NoWorkflow tab={tab} search={q} />
          ) : (
            <div className="stack">
              {pages.map(({ workflows: rows }, at) => (
                <WorkflowTable
                  key={rows[0]?.id ?? at}
                  rows={rows}
                  onMore={
                    at === pages.length - 1 && workflows.hasNextPage
                      ? () => void workflows.fetchNextPage()
                      : undefined
                  }
                  isLoadingMore={workflows.isFetchingNextPage}
                />
              ))}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

function NoWorkflow({ tab, search }: { readonly tab: string; readonly search: string }) {
  if (search !== "") return <Empty title={`No workflow has “${search}” in its name or its description.`} />;
  if (tab === "failing") return <Empty title="No workflow has failed in the last 7 days." />;
  if (tab === "disabled") return <Empty title="No workflow is disabled." />;
  return (
    <Empty title="There are no workflows yet.">
      <p>
        A workflow runs the same steps in many repositories: manually, on a schedule, or when a pull request
        changes. <Link to="/workflows/new">Create the first one</Link>.
      </p>
    </Empty>
  );
}

/** Shows one page of workflows. The results of all of them are read together. */
function WorkflowTable({
  rows,
  onMore,
  isLoadingMore,
}: {
  readonly rows: readonly Workflow[];
  readonly onMore: (() => void) | undefined;
  readonly isLoadingMore: boolean;
}) {
  const { data } = useQuery(WorkflowService.method.listWorkflowExecutions, {
    filter: { workflowIds: rows.map(({ id }) => id) },
    pagination: { pageSize: 100 },
  });
  const last = useMemo(() => {
    if (!data) return undefined;
    return Map.groupBy(
      data.workflowExecutions,
      ({ metadata }: WorkflowExecution) => metadata?.workflowId ?? "",
    );
  }, [data]);
  return (
    <DataTable
      label="Workflows"
      rows={rows}
      keyOf={({ id }) => id}
      onMore={onMore}
      isLoadingMore={isLoadingMore}
      columns={[
        {
          head: "Workflow",
          cell: ({ id, metadata }) => (
            <Link className="row-link" to="/workflows/$workflowId" params={{ workflowId: id }}>
              {metadata?.name}
            </Link>
          ),
        },
        {
          head: "Last results",
          cell: ({ id }) =>
            last && (
              <Results
                workflowId={id}
                known={last.get(id) ?? []}
                isComplete={!data?.pagination?.nextToken || last.has(id)}
              />
            ),
        },
        {
          head: "State",
          cell: (workflow) => {
            const [tone, word] = workflowState(workflow);
            return <State tone={tone} word={word} />;
          },
          isExtra: true,
        },
        {
          head: "Starts",
          cell: ({ spec }) => (
            <span className="dim">{(spec?.triggers ?? []).map(triggerText).join(" · ") || "Manual"}</span>
          ),
          isExtra: true,
        },
        { head: "Changed", cell: ({ metadata }) => <Ago at={metadata?.updatedAt} />, isExtra: true },
      ]}
    />
  );
}
