import { createClient } from "@connectrpc/connect";
import { useState } from "react";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { EventService, type WatchEventsResponse } from "#gen/service/v1/event_service_pb.js";
import { transport } from "../../api/server.tsx";
import { useStream } from "../../api/stream.ts";
import { DataTable } from "../../parts/DataTable.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { wordsOf } from "./words.ts";

const events = createClient(EventService, transport);

/** Maximum events that the page keeps; the newest replace the oldest. */
const KEPT = 200;

/** Shows the events of the organization that the person may read, as they happen. */
export function Events() {
  const [received, setReceived] = useState<readonly WatchEventsResponse[]>([]);
  const [last] = useState<{ sequence: bigint | undefined }>({ sequence: undefined });
  const state = useStream({
    key: "organization-events",
    slot: "page",
    open: (signal, onHeader) =>
      events.watchEvents(
        {
          scope: { case: "organization", value: true },
          ...(last.sequence !== undefined && { afterSequence: last.sequence }),
        },
        { signal, onHeader },
      ),
    onMessage(event) {
      last.sequence = event.sequence;
      // The stream begins with a sign of life without a change.
      if (event.operation === ResourceOperation.UNSPECIFIED && !event.historyPruned) return;
      setReceived((before) => [event, ...before].slice(0, KEPT));
    },
  });
  return (
    <Section
      title="Events"
      more={
        state === "live" ? (
          <State tone="running" word="Live" />
        ) : (
          <State tone="waiting" word="Waiting for the stream" />
        )
      }
    >
      {received.length === 0 ? (
        <Empty title="Nothing has happened since you opened this page.">
          <p>
            Changes to resources that you can read appear here as they happen. For earlier changes, see the
            audit log.
          </p>
        </Empty>
      ) : (
        <DataTable
          label="Events"
          rows={received}
          keyOf={({ sequence }) => String(sequence)}
          columns={[
            { head: "When", cell: ({ at }) => <Ago at={at} /> },
            {
              head: "What",
              cell: ({ operation, resourceType, historyPruned }) =>
                historyPruned
                  ? "older events are no longer kept"
                  : `${wordsOf(ResourceType[resourceType])} ${wordsOf(ResourceOperation[operation]).toLowerCase()}`,
            },
            { head: "Resource", cell: ({ resourceId }) => <code>{resourceId}</code> },
            { head: "Number", cell: ({ sequence }) => String(sequence), isNumeric: true, isExtra: true },
          ]}
        />
      )}
    </Section>
  );
}
