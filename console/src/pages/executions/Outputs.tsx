import { createClient } from "@connectrpc/connect";
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import {
  type ListWorkflowExecutionOutputsResponse_ActionOutput as ActionOutput,
  WorkflowService,
} from "#gen/service/v1/workflow_service_pb.js";
import { transport } from "../../api/server.tsx";
import { download } from "../../parts/download.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { SearchField } from "../../parts/SearchField.tsx";
import { csvOf, type OutputRow, sortedRows, valueText } from "./outputs.ts";
import { useActions } from "./use-actions.ts";

const workflows = createClient(WorkflowService, transport);

/** Outputs per page (contract), and the maximum number of pages of one execution. */
const PAGE = 100;
const MAX_PAGES = 11;

/** Rows that are rendered at once; more are rendered on request. */
const DRAWN = 100;

/** Shows the outputs of an execution's actions as a table that sorts and filters, and as a file. */
export function Outputs({
  execution,
  name,
}: {
  readonly execution: WorkflowExecution;
  readonly name: string;
}) {
  const actions = useActions(execution.id);
  const outputs = useQuery({
    queryKey: ["connect-query", { serviceName: "service.v1.WorkflowService", outputsOf: execution.id }],
    queryFn: ({ signal }) => readOutputs(execution.id, signal),
  });
  const names = new Map(actions.data?.map(({ id, metadata }) => [id, metadata?.actionName]));
  return (
    <Loaded reading={outputs}>
      {(found) =>
        found.length === 0 ? (
          <Empty title="There are no outputs.">
            <p>Report steps produce outputs, from a command or from an agent's answer.</p>
          </Empty>
        ) : (
          <OutputTable
            fileName={`${name}-${execution.id.slice(-8)}.csv`}
            rows={found.map(({ actionId, values }) => ({
              actionId,
              name: names.get(actionId) ?? actionId.slice(-8),
              values,
            }))}
          />
        )
      }
    </Loaded>
  );
}

function OutputTable({ rows, fileName }: { readonly rows: readonly OutputRow[]; readonly fileName: string }) {
  const { q: text = "", sort: sorts = "", order } = useSearch({ from: "/executions/$executionId" });
  const navigate = useNavigate({ from: "/executions/$executionId" });
  const [drawn, setDrawn] = useState(DRAWN);
  const columns = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))];
  // The address may name an output that no longer exists.
  const sort = { column: columns.includes(sorts) ? sorts : "", isDescending: order === "desc" };
  const choose = (search: {
    q?: string | undefined;
    sort?: string | undefined;
    order?: string | undefined;
  }) => void navigate({ search: (before) => ({ ...before, ...search }), replace: true, resetScroll: false });
  const wanted = text.toLowerCase();
  const kept = rows.filter(({ name, values }) =>
    [name, ...columns.map((column) => valueText(values[column]))].some((cell) =>
      cell.toLowerCase().includes(wanted),
    ),
  );
  const sorted = sortedRows(kept, sort.column, sort.isDescending);
  const sortBy = (column: string) =>
    choose({
      sort: column || undefined,
      order: sort.column === column && !sort.isDescending ? "desc" : undefined,
    });
  const isNumeric = (column: string) =>
    rows.every(({ values }) => ["intValue", "floatValue", undefined].includes(values[column]?.value.case));
  const head = (column: string, label: string) => (
    <th
      key={column}
      scope="col"
      className={column !== "" && isNumeric(column) ? "numeric" : undefined}
      aria-sort={sort.column === column ? (sort.isDescending ? "descending" : "ascending") : "none"}
    >
      <button type="button" className="sort" onClick={() => sortBy(column)}>
        {label}
        {sort.column === column && (
          <span className={sort.isDescending ? undefined : "turned"}>
            <Icon name="down" size={12} />
          </span>
        )}
      </button>
    </th>
  );
  return (
    <>
      <div className="row outputs-head">
        <SearchField
          label="Filter the outputs"
          placeholder="Filter"
          value={text}
          onType={(q) => choose({ q })}
        />
        <span className="dim small figures" role="status">
          {kept.length.toLocaleString()} of {rows.length.toLocaleString()}
        </span>
        <Button
          variant="default"
          size="xs"
          onClick={() => download(new Blob([csvOf(sorted, columns)], { type: "text/csv" }), fileName)}
        >
          Download CSV
        </Button>
      </div>
      <section
        className="table-frame"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        aria-label="Outputs"
      >
        <table className="table outputs">
          <thead>
            <tr>
              {head("", "Action")}
              {columns.map((column) => head(column, column))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, drawn).map(({ actionId, name, values }) => (
              <tr key={actionId}>
                <td>
                  <Link
                    className="row-link"
                    to="."
                    search={(before: Record<string, unknown>) => ({
                      ...before,
                      tab: undefined,
                      action: actionId,
                    })}
                  >
                    {name}
                  </Link>
                </td>
                {columns.map((column) => (
                  <td key={column} className={isNumeric(column) ? "numeric" : undefined}>
                    {valueText(values[column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {sorted.length > drawn && (
          <div className="table-more">
            <Button variant="default" size="xs" onClick={() => setDrawn(drawn + DRAWN)}>
              Show more
            </Button>
          </div>
        )}
      </section>
    </>
  );
}

async function readOutputs(executionId: string, signal: AbortSignal): Promise<ActionOutput[]> {
  const outputs: ActionOutput[] = [];
  let token = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const read = await workflows.listWorkflowExecutionOutputs(
      { filter: { workflowExecutionIds: [executionId] }, pagination: { pageSize: PAGE, token } },
      { signal },
    );
    outputs.push(...read.outputs);
    token = read.pagination?.nextToken ?? "";
    if (token === "") break;
  }
  return outputs;
}
