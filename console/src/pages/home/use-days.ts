import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useQuery as useReading } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  type GetWorkflowExecutionSummaryResponse as Summary,
  WorkflowService,
} from "#gen/service/v1/workflow_service_pb.js";
import { transport } from "../../api/server.tsx";

const workflows = createClient(WorkflowService, transport);

const DAYS = 7;

/** What ended on one day. */
export interface Day {
  /** When it began, in the browser's time zone. */
  readonly start: Date;
  readonly succeeded: number;
  readonly failed: number;
  readonly stopped: number;
}

/** Returns today and the six days before; a day need not have 24 hours. */
function lastDays(): readonly Date[] {
  const now = new Date();
  return Array.from(
    { length: DAYS },
    (_, at) => new Date(now.getFullYear(), now.getMonth(), now.getDate() + at + 1 - DAYS),
  );
}

function filterOf(start: Date) {
  const end = new Date(start.getFullYear(), start.getMonth(), start.getDate() + 1);
  return { dateRange: { startTime: timestampFromDate(start), endTime: timestampFromDate(end) } };
}

function dayOf(start: Date, { totalCount, successfulCount, failedCount }: Summary): Day {
  const [succeeded, failed] = [Number(successfulCount), Number(failedCount)];
  return { start, succeeded, failed, stopped: Number(totalCount) - succeeded - failed };
}

/** Reads the results of each of the last seven days. Past days are read once, today as it changes. */
export function useDays() {
  const days = useMemo(lastDays, []);
  const today = days.at(-1) ?? new Date();
  const past = days.slice(0, -1);
  const before = useReading({
    queryKey: ["week", today.getTime()],
    queryFn: ({ signal }) =>
      Promise.all(
        past.map((start) => workflows.getWorkflowExecutionSummary({ filter: filterOf(start) }, { signal })),
      ),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const filter = useMemo(() => filterOf(today), [today]);
  const now = useQuery(WorkflowService.method.getWorkflowExecutionSummary, { filter });
  const data = useMemo(() => {
    if (!before.data || !now.data) return undefined;
    return [...before.data, now.data].map((summary, at) => dayOf(days[at] ?? today, summary));
  }, [before.data, now.data, days, today]);
  return {
    data,
    error: before.error ?? now.error,
    refetch: () => Promise.all([before.refetch(), now.refetch()]),
  };
}
