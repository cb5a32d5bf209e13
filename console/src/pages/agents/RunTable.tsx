import { Link } from "@tanstack/react-router";
import type { AgentExecution } from "#gen/service/v1/agent_pb.js";
import { Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { runState, runTitle } from "./run-state.ts";

interface RunTableProps {
  readonly label: string;
  readonly rows: readonly AgentExecution[];
  readonly onMore?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
}

/** A list of agent runs. */
export function RunTable({ label, rows, onMore, isLoadingMore = false }: RunTableProps) {
  return (
    <DataTable
      label={label}
      rows={rows}
      keyOf={({ id }) => id}
      onMore={onMore}
      isLoadingMore={isLoadingMore}
      columns={[
        {
          head: "Run",
          cell: (run) => (
            <Link className="row-link" to="/agents/$runId" params={{ runId: run.id }}>
              {runTitle(run)}
            </Link>
          ),
        },
        {
          head: "State",
          cell: (run) => {
            const [tone, word] = runState(run);
            return <State tone={tone} word={word} />;
          },
        },
        { head: "Started by", cell: ({ metadata }) => <Who subject={metadata?.creator} />, isExtra: true },
        { head: "Started", cell: ({ metadata }) => <Ago at={metadata?.createdAt} />, isExtra: true },
      ]}
    />
  );
}
