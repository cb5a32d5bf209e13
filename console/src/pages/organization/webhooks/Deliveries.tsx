import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import {
  EventDeliveryState as DeliveryState,
  type EventDelivery,
  EventDeliveryVerdict as Verdict,
} from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService } from "#gen/service/v1/event_subscription_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../../api/pages.ts";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State, type Tone } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";

const STATES: Readonly<Record<DeliveryState, readonly [Tone, string]>> = {
  [DeliveryState.UNSPECIFIED]: ["waiting", "Unknown"],
  [DeliveryState.PENDING]: ["waiting", "Pending"],
  [DeliveryState.DELIVERED]: ["done", "Delivered"],
  [DeliveryState.FAILED]: ["failed", "Failed"],
  [DeliveryState.REDELIVERING]: ["running", "Redelivering"],
};

const VERDICTS: Readonly<Record<Verdict, string>> = {
  [Verdict.UNSPECIFIED]: "Unknown",
  [Verdict.ACCEPTED]: "Accepted",
  [Verdict.REFUSED]: "Refused",
  [Verdict.UNREACHABLE]: "Not reached",
  [Verdict.ADDRESS_REFUSED]: "Not sent",
  [Verdict.UNREADABLE]: "Not understood",
};

/** The states by their names in the address, such as `failed`. */
const STATE_NAMES = new Map(
  Object.keys(STATES)
    .map((value) => Number(value) as DeliveryState)
    .filter((value) => value !== DeliveryState.UNSPECIFIED)
    .map((value) => [DeliveryState[value].toLowerCase(), value]),
);

/** Polling interval of the ledger: deliveries cause no events. */
const READ_MS = 3_000;

/** Shows the ledger of a webhook: each event, the result of its delivery, and a button to redeliver it. */
export function Deliveries({ subscriptionId }: { readonly subscriptionId: string }) {
  const { state: chosen = "" } = useSearch({ from: "/organization" });
  const navigate = useNavigate({ from: "/organization" });
  const state = STATE_NAMES.get(chosen) ?? DeliveryState.UNSPECIFIED;
  const subscription = useQuery(EventSubscriptionService.method.getEventSubscription, {
    eventSubscriptionId: subscriptionId,
  });
  const entries = useInfiniteQuery(
    EventSubscriptionService.method.listEventDeliveries,
    {
      ...FIRST_PAGE,
      eventSubscriptionId: subscriptionId,
      filter: { states: state === DeliveryState.UNSPECIFIED ? [] : [state] },
    },
    { ...BY_PAGE, refetchInterval: READ_MS },
  );
  const redeliver = useMutation(EventSubscriptionService.method.redeliverEvent, {
    onSettled: () => void entries.refetch(),
  });
  const name = subscription.data?.eventSubscription?.name ?? "the webhook";
  return (
    <>
      <p className="back">
        <Link to="/organization" search={{ tab: "webhooks" }}>
          All webhooks
        </Link>
      </p>
      <Section
        title={`Ledger of ${name}`}
        more={
          <NativeSelect
            size="xs"
            aria-label="State"
            value={state === DeliveryState.UNSPECIFIED ? "" : chosen}
            onChange={(event) => {
              const value = event.currentTarget.value || undefined;
              void navigate({
                search: (before) => ({ ...before, state: value }),
                replace: true,
                resetScroll: false,
              });
            }}
            data={[
              { value: "", label: "Every state" },
              ...[...STATE_NAMES].map(([value, each]) => ({ value, label: STATES[each][1] })),
            ]}
          />
        }
      >
        <Problem error={subscription.error ?? redeliver.error} />
        <Loaded reading={entries}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.eventDeliveries);
            if (rows.length === 0) {
              return (
                <Empty title="There are no deliveries.">
                  <p>Each event that the webhook sends is listed here with its result.</p>
                </Empty>
              );
            }
            return (
              <DataTable
                label="Ledger"
                isStacked
                rows={rows}
                keyOf={({ id }) => id}
                {...moreOf(entries)}
                columns={[
                  { head: "Happened", cell: ({ happenedAt }) => <Ago at={happenedAt} /> },
                  {
                    head: "Event",
                    cell: ({ eventKind, resourceId }) => (
                      <>
                        {eventKind}
                        <code className="dim block cut">{resourceId}</code>
                      </>
                    ),
                  },
                  { head: "State", cell: (entry) => <DeliveryStatus entry={entry} /> },
                  {
                    head: "Attempts",
                    cell: ({ attempts }) => attempts.length,
                    isNumeric: true,
                    isExtra: true,
                  },
                  {
                    head: "Action",
                    cell: ({ id, state: present }) => (
                      <Button
                        variant="default"
                        size="compact-xs"
                        disabled={redeliver.isPending || present === DeliveryState.REDELIVERING}
                        onClick={() => redeliver.mutate({ eventDeliveryId: id })}
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
      </Section>
    </>
  );
}

/** Shows the state of a delivery, the verdict on its last attempt and the time of the next. */
function DeliveryStatus({ entry: { state, attempts, nextAttemptAt } }: { readonly entry: EventDelivery }) {
  const [tone, word] = STATES[state];
  const last = attempts.at(-1);
  return (
    <>
      <State tone={tone} word={word} />
      {last && (
        <div className="dim small">
          {VERDICTS[last.verdict]}: {last.detail}
        </div>
      )}
      {last && state === DeliveryState.PENDING && nextAttemptAt && (
        <div className="dim small">
          next attempt <Ago at={nextAttemptAt} />
        </div>
      )}
    </>
  );
}
