import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { NamedExecutions } from "../executions/NamedExecutions.tsx";

/** Rows of the list; the page of executions has all. */
const ROWS = 5;
const DAYS = 7;
const DAY_MS = 86_400_000;

/** The executions that failed last, and what workflows came to in the last seven days. */
export function Week() {
  const failed = useQuery(WorkflowService.method.listWorkflowExecutions, {
    filter: { hasFailedActions: true },
    pagination: { pageSize: ROWS },
  });
  const dateRange = useMemo(() => {
    const now = Date.now();
    return {
      startTime: timestampFromDate(new Date(now - DAYS * DAY_MS)),
      // What ends while the page is open counts, too.
      endTime: timestampFromDate(new Date(now + DAY_MS)),
    };
  }, []);
  const week = useQuery(WorkflowService.method.getWorkflowExecutionSummary, { filter: { dateRange } });
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
              <Empty title="No execution has failed." />
            ) : (
              <NamedExecutions label="Failed executions" rows={rows} />
            )
          }
        </Loaded>
      </Section>
      <Section title="Last 7 days">
        <Loaded reading={week} lines={1}>
          {({ totalCount, successfulCount, failedCount }) => (
            <dl className="figures-row figures">
              <Figure name="executions ended" value={totalCount} />
              <Figure name="succeeded" value={successfulCount} />
              <Figure name="failed" value={failedCount} />
              <Figure name="stopped" value={totalCount - successfulCount - failedCount} />
            </dl>
          )}
        </Loaded>
      </Section>
    </>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: bigint }) {
  return (
    <div>
      <dt className="dim small">{name}</dt>
      <dd>{value.toLocaleString()}</dd>
    </div>
  );
}
