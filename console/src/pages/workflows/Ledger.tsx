import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import {
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict as Verdict,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { rereadAll } from "../../api/server.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { EVENTS, VERDICTS } from "./workflow-state.ts";

const PAGE = 50;

const SOURCES: Readonly<Record<Source, string>> = {
  [Source.UNSPECIFIED]: "Unknown",
  [Source.MANUAL]: "Manual",
  [Source.TIME]: "Schedule",
  [Source.WEBHOOK]: "Webhook",
};

/** The verdicts by their names in the address, such as `started`. */
const VERDICT_NAMES = new Map(
  Object.keys(VERDICTS)
    .map((value) => Number(value) as Verdict)
    .filter((value) => value !== Verdict.UNSPECIFIED)
    .map((value) => [Verdict[value].toLowerCase().replaceAll("_", "-"), value]),
);

/** Shows every delivery, instant and start of a workflow, and its result. */
export function Ledger({ workflowId }: { readonly workflowId: string }) {
  const { verdict: chosen = "" } = useSearch({ from: "/workflows/$workflowId" });
  const navigate = useNavigate({ from: "/workflows/$workflowId" });
  const verdict = VERDICT_NAMES.get(chosen) ?? Verdict.UNSPECIFIED;
  const entries = useInfiniteQuery(
    WorkflowService.method.listWorkflowTriggerEvents,
    {
      filter: {
        workflowIds: [workflowId],
        verdicts: verdict === Verdict.UNSPECIFIED ? [] : [verdict],
      },
      pagination: { pageSize: PAGE },
    },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
    },
  );
  const redeliver = useMutation(WorkflowService.method.redeliverWorkflowTriggerEvent, rereadAll);
  return (
    <>
      <div className="row ledger-head">
        <NativeSelect
          size="xs"
          aria-label="Verdict"
          value={verdict === Verdict.UNSPECIFIED ? "" : chosen}
          onChange={(event) => {
            const value = event.currentTarget.value || undefined;
            void navigate({
              search: (before) => ({ ...before, verdict: value }),
              replace: true,
              resetScroll: false,
            });
          }}
          data={[
            { value: "", label: "Every verdict" },
            ...[...VERDICT_NAMES].map(([value, each]) => ({ value, label: VERDICTS[each][1] })),
          ]}
        />
        {redeliver.data && (
          <span role="status" className="dim">
            Delivered again:{" "}
            {redeliver.data.triggerEvents.map(({ verdict }) => VERDICTS[verdict][1]).join(", ")}
          </span>
        )}
      </div>
      <Problem error={redeliver.error} />
      <Loaded reading={entries}>
        {({ pages }) => {
          const rows = pages.flatMap(({ triggerEvents }) => triggerEvents);
          if (rows.length === 0) {
            if (verdict !== Verdict.UNSPECIFIED)
              return <Empty title="No events with this verdict. Choose another one." />;
            return (
              <Empty title="No events yet.">
                <p>
                  Webhook deliveries, scheduled starts and manual starts are kept here for 30 days, including
                  rejected ones.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Ledger"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              onMore={entries.hasNextPage ? () => void entries.fetchNextPage() : undefined}
              isLoadingMore={entries.isFetchingNextPage}
              columns={[
                { head: "When", cell: ({ at }) => <Ago at={at} /> },
                { head: "What", cell: (entry) => <What entry={entry} /> },
                {
                  head: "Verdict",
                  cell: ({ verdict, reason }) => {
                    const [tone, word] = VERDICTS[verdict];
                    return (
                      <>
                        <State tone={tone} word={word} />
                        {reason && <div className="dim small">{reason}</div>}
                      </>
                    );
                  },
                },
                {
                  head: "Execution",
                  cell: ({ workflowExecutionId: executionId }) =>
                    executionId && (
                      <Link to="/executions/$executionId" params={{ executionId }}>
                        <code>{executionId.slice(-8)}</code>
                      </Link>
                    ),
                  isExtra: true,
                },
                {
                  head: "Action",
                  cell: (entry) =>
                    entry.verdict !== Verdict.BAD_SIGNATURE && (
                      <Button
                        variant="default"
                        size="compact-xs"
                        disabled={redeliver.isPending}
                        onClick={() => redeliver.mutate({ triggerEventId: entry.id })}
                      >
                        Redeliver
                      </Button>
                    ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </>
  );
}

/** Shows what arrived: the sender, the trigger, and the event and its pull request. */
function What({ entry }: { readonly entry: WorkflowTriggerEvent }) {
  const { source, triggerIndex, pullRequest, pullRequestEvent, redeliveredEventId, deliveryId } = entry;
  const event = EVENTS.find(([kind]) => kind === pullRequestEvent)?.[1];
  return (
    <>
      <div>
        {SOURCES[source]}
        {triggerIndex !== undefined && <span className="dim">, trigger {triggerIndex + 1}</span>}
        {redeliveredEventId && <span className="dim">, again</span>}
      </div>
      {pullRequest && (
        <div className="dim small">
          {event} {pullRequest.title}
        </div>
      )}
      {deliveryId && <code className="dim block cut delivery-id">{deliveryId}</code>}
    </>
  );
}
