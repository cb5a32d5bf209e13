import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Chart } from "../../parts/chart/Chart.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { NamedExecutions } from "../executions/NamedExecutions.tsx";
import { type Day, useDays } from "./use-days.ts";

/** Rows of the list; the page of executions has all. */
const ROWS = 5;

/** Shows the executions that failed last, and the results of the last seven days by day. */
export function Week() {
  const failed = useQuery(WorkflowService.method.listWorkflowExecutions, {
    filter: { hasFailedActions: true },
    pagination: { pageSize: ROWS },
  });
  const week = useDays();
  return (
    <>
      <Section
        title="Failed executions"
        more={
          <Link to="/executions" search={{ tab: "failed" }}>
            All with failures
          </Link>
        }
      >
        <Loaded reading={failed} lines={2}>
          {({ workflowExecutions: rows }) =>
            rows.length === 0 ? (
              <Empty title="No executions have failed." />
            ) : (
              <NamedExecutions label="Failed executions" rows={rows} />
            )
          }
        </Loaded>
      </Section>
      <Section title="Last 7 days">
        <Loaded reading={week} lines={1}>
          {(days) => <Days days={days} />}
        </Loaded>
      </Section>
    </>
  );
}

const dayText = (time: number): string =>
  new Date(time * 1000).toLocaleDateString("en", { weekday: "short", day: "numeric" });
const countText = (count: number): string => count.toLocaleString("en");

function Days({ days }: { readonly days: readonly Day[] }) {
  const { times, curves } = useMemo(
    () => ({
      times: days.map(({ start }) => start.getTime() / 1000),
      curves: [
        { label: "succeeded", tone: "done", values: days.map(({ succeeded }) => succeeded) },
        { label: "failed", tone: "failed", values: days.map(({ failed }) => failed) },
        { label: "stopped", tone: "waiting", values: days.map(({ stopped }) => stopped) },
      ] as const,
    }),
    [days],
  );
  const [succeeded = 0, failed = 0, stopped = 0] = curves.map(({ values }) =>
    values.reduce((sum, value) => sum + value, 0),
  );
  const ended = succeeded + failed + stopped;
  if (ended === 0) {
    return (
      <Empty title="No executions have ended in these days.">
        <p>Start a workflow on the Workflows page; its outcome is counted here.</p>
      </Empty>
    );
  }
  return (
    <div className="stack">
      <dl className="figures-row figures">
        <Figure name="executions ended" value={ended} />
        <Figure name="succeeded" value={succeeded} />
        <Figure name="failed" value={failed} />
        <Figure name="stopped" value={stopped} />
      </dl>
      <Chart
        label="Executions by day"
        head="Day"
        isDaily
        isCounted
        times={times}
        curves={curves}
        timeText={dayText}
        amountText={countText}
      />
    </div>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: number }) {
  return (
    <div>
      <dt className="dim small">{name}</dt>
      <dd>{countText(value)}</dd>
    </div>
  );
}
