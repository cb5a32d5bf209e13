import { Link } from "@tanstack/react-router";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { Who } from "../../api/person.tsx";
import { type Column, DataTable } from "../../parts/DataTable.tsx";
import { State } from "../../parts/State.tsx";
import { Ago, Lasting } from "../../parts/Time.tsx";
import { executionState, startedBy } from "../workflows/workflow-state.ts";

interface ExecutionTableProps {
  readonly label: string;
  readonly rows: readonly WorkflowExecution[];
  /** Returns the name of an execution's workflow; absent on the page of one workflow. */
  readonly nameOf?: (execution: WorkflowExecution) => string;
  readonly onMore?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
}

/** Lists executions, newest first. */
export function ExecutionTable({ label, rows, nameOf, onMore, isLoadingMore = false }: ExecutionTableProps) {
  const columns: Column<WorkflowExecution>[] = [
    {
      head: "Execution",
      cell: (execution) => (
        <Link className="row-link" to="/executions/$executionId" params={{ executionId: execution.id }}>
          {nameOf ? nameOf(execution) : <code>{execution.id.slice(-8)}</code>}
        </Link>
      ),
    },
    {
      head: "Result",
      cell: (execution) => {
        const [tone, word] = executionState(execution);
        return <State tone={tone} word={word} />;
      },
    },
    { head: "Actions", cell: (execution) => <Counts execution={execution} />, isNumeric: true },
    {
      head: "Started",
      cell: ({ metadata, spec }) => (
        <>
          <Ago at={metadata?.startedAt} /> <span className="dim">{startedBy(spec?.trigger)}</span>
        </>
      ),
      isExtra: true,
    },
    { head: "By", cell: ({ metadata }) => <Who subject={metadata?.creator} />, isExtra: true },
    {
      head: "Took",
      cell: ({ metadata }) => <Lasting from={metadata?.startedAt} to={metadata?.finishedAt} />,
      isNumeric: true,
      isExtra: true,
    },
  ];
  return (
    <DataTable
      label={label}
      rows={rows}
      keyOf={({ id }) => id}
      onMore={onMore}
      isLoadingMore={isLoadingMore}
      columns={columns}
    />
  );
}

/** Shows how many of the actions have ended, and how many of those failed. */
function Counts({ execution: { status } }: { readonly execution: WorkflowExecution }) {
  if (!status) return null;
  const { pendingActionCount, runningActionCount, failedActionCount, doneActionCount, stoppedActionCount } =
    status;
  const ended = failedActionCount + doneActionCount + stoppedActionCount;
  return (
    <span className="figures">
      {failedActionCount > 0 && (
        <span className="tone-failed">{failedActionCount.toLocaleString()} failed, </span>
      )}
      {ended.toLocaleString()} of {(ended + pendingActionCount + runningActionCount).toLocaleString()}
    </span>
  );
}
