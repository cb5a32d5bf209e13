import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../parts/Page.tsx";
import { SearchField } from "../../parts/SearchField.tsx";
import { NamedExecutions } from "./NamedExecutions.tsx";

/** Executions per page: a filter takes this many ids to read the names of their workflows (contract). */
const PAGE = 25;

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

const TABS = {
  all: ["All", {}],
  "going-on": ["Running", { statusPhases: [Phase.PENDING, Phase.RUNNING, Phase.STOPPING] }],
  failed: ["With failures", { hasFailedActions: true }],
} as const;

/** Lists the executions of all workflows, newest first. */
export function Executions() {
  const { q = "", tab = "all" } = useSearch({ from: "/executions" });
  const navigate = useNavigate();
  const [search] = useDebouncedValue(q, TYPED_MS);
  const [, filter] = TABS[tab as keyof typeof TABS] ?? TABS.all;
  const statusPhases = "statusPhases" in filter ? [...filter.statusPhases] : [];
  const executions = useInfiniteQuery(
    WorkflowService.method.listWorkflowExecutions,
    {
      filter: { search, statusPhases, ...("hasFailedActions" in filter && { hasFailedActions: true }) },
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
    <Page title="Executions" actions={<Link to="/workflows">All workflows</Link>}>
      <TabLinks
        current={tab}
        tabs={Object.entries(TABS).map(([value, [label]]) => [value, label])}
        keep={["q"]}
      />
      <SearchField
        label="Search executions"
        placeholder="Search workflow names and ids"
        className="search"
        value={q}
        onType={(typed) =>
          void navigate({ to: "/executions", search: (before) => ({ ...before, q: typed }), replace: true })
        }
      />
      <Loaded reading={executions}>
        {({ pages }) =>
          pages[0]?.workflowExecutions.length === 0 ? (
            <Empty
              title={
                q === "" ? "There are no executions here." : `No execution has “${q}” in its name or id.`
              }
            >
              <p>Start a workflow to see its executions here.</p>
            </Empty>
          ) : (
            <div className="stack">
              {pages.map(({ workflowExecutions: rows }, at) => (
                <NamedExecutions
                  label="Executions"
                  key={rows[0]?.id ?? at}
                  rows={rows}
                  onMore={
                    at === pages.length - 1 && executions.hasNextPage
                      ? () => void executions.fetchNextPage()
                      : undefined
                  }
                  isLoadingMore={executions.isFetchingNextPage}
                />
              ))}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}
