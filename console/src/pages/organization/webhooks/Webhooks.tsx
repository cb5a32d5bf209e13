import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import {
  type EventSubscription,
  EventSubscriptionState as SubscriptionState,
} from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService } from "#gen/service/v1/event_subscription_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../../api/pages.ts";
import { transport } from "../../../api/server.tsx";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Dialog } from "../../../parts/Dialog.tsx";
import { DialogButton } from "../../../parts/DialogButton.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { ShownOnce } from "../../../parts/ShownOnce.tsx";
import { State, type Tone } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";
import type { PartProps } from "../Organization.tsx";
import { Deliveries } from "./Deliveries.tsx";
import { WebhookForm } from "./WebhookForm.tsx";

const subscriptions = createClient(EventSubscriptionService, transport);

const STATES: Readonly<Record<SubscriptionState, readonly [Tone, string]>> = {
  [SubscriptionState.UNSPECIFIED]: ["waiting", "Unknown"],
  [SubscriptionState.ACTIVE]: ["done", "Active"],
  [SubscriptionState.PAUSED]: ["stopped", "Paused"],
  [SubscriptionState.PAUSED_BY_SERVER]: ["failed", "Paused by the server"],
};

/** Lists the subscriptions that send events to external addresses, or shows the ledger of one. */
export function Webhooks({ isAdministrator }: PartProps) {
  const { id } = useSearch({ from: "/organization" });
  if (!isAdministrator) {
    return (
      <Empty title="Only administrators can manage webhooks.">
        <p>A webhook can send any event of the organization to an outside address.</p>
      </Empty>
    );
  }
  return id === undefined ? <WebhookList /> : <Deliveries subscriptionId={id} />;
}

function WebhookList() {
  const list = useInfiniteQuery(EventSubscriptionService.method.listEventSubscriptions, FIRST_PAGE, BY_PAGE);
  const read = () => void list.refetch();
  const settled = { onSettled: read };
  const update = useMutation(EventSubscriptionService.method.updateEventSubscription, settled);
  const remove = useMutation(EventSubscriptionService.method.deleteEventSubscription, settled);
  return (
    <Section
      title="Webhooks"
      more={
        <DialogButton label="Create webhook" size={560}>
          {(close) => <WebhookForm onDone={read} onClose={close} />}
        </DialogButton>
      }
    >
      <Problem error={update.error ?? remove.error} />
      <Loaded reading={list}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.eventSubscriptions);
          if (rows.length === 0) {
            return (
              <Empty title="There are no webhooks yet.">
                <p>
                  A webhook sends events as they happen: signed, to an address, or as messages to a channel of
                  a chat service. For example: an agent is waiting, an approval is needed, something failed.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Webhooks"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(list)}
              columns={[
                { head: "Name", cell: (row) => <Name subscription={row} /> },
                {
                  head: "Events",
                  cell: ({ eventKinds }) => <code className="cut">{eventKinds.join(", ")}</code>,
                  isExtra: true,
                },
                { head: "State", cell: (row) => <SubscriptionStatus subscription={row} /> },
                {
                  head: "Action",
                  cell: (row) => (
                    <div className="row-actions">
                      <DialogButton label="Edit" isMain={false} size={560}>
                        {(close) => <WebhookForm subscription={row} onDone={read} onClose={close} />}
                      </DialogButton>
                      <ConfirmButton
                        label={isActive(row) ? "Pause" : "Resume"}
                        question={
                          isActive(row)
                            ? "Nothing is sent until you resume it. Then it continues with the events in between."
                            : "Sends the events since it was paused, as far back as events are kept."
                        }
                        onConfirm={() =>
                          update.mutate({ eventSubscriptionId: row.id, paused: isActive(row) })
                        }
                        isBusy={update.isPending && update.variables.eventSubscriptionId === row.id}
                      />
                      <NewSecret subscription={row} onDone={read} />
                      <ConfirmButton
                        label="Delete"
                        question={`Stops sending to ${row.target} and removes its delivery log.`}
                        onConfirm={() => remove.mutate({ eventSubscriptionId: row.id })}
                        isBusy={remove.isPending && remove.variables.eventSubscriptionId === row.id}
                      />
                    </div>
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}

const isActive = ({ state }: EventSubscription) => state === SubscriptionState.ACTIVE;

function Name({ subscription: { id, name, target } }: { readonly subscription: EventSubscription }) {
  return (
    <>
      <Link to="/organization" search={{ tab: "webhooks", id }}>
        {name}
      </Link>
      <div className="dim small">{target}</div>
    </>
  );
}

/** Shows whether events are sent, and since when the target has been failing. */
function SubscriptionStatus({ subscription }: { readonly subscription: EventSubscription }) {
  const [tone, word] = STATES[subscription.state];
  return (
    <>
      <State tone={tone} word={word} />
      {subscription.failingSince && (
        <div className="dim small">
          failing since <Ago at={subscription.failingSince} />
        </div>
      )}
    </>
  );
}

/** Creates another secret and shows it once. No cache contains it, and closing removes it from the page. */
function NewSecret({
  subscription: { id },
  onDone,
}: {
  readonly subscription: EventSubscription;
  readonly onDone: () => void;
}) {
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const rotate = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      setSecret((await subscriptions.rotateEventSubscriptionSecret({ eventSubscriptionId: id })).secret);
      onDone();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <>
      <ConfirmButton
        label="New secret"
        question="Events are signed with both secrets for 24 hours. Update the receiver by then."
        onConfirm={() => void rotate()}
        isBusy={isBusy}
      />
      <Problem error={error} />
      {secret !== "" && (
        <Dialog title="Secret of the webhook" onClose={() => setSecret("")}>
          <ShownOnce
            note="Copy the secret now. It will not be shown again."
            text={secret}
            what="secret"
            onClose={() => setSecret("")}
          />
        </Dialog>
      )}
    </>
  );
}
