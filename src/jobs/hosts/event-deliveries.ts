import type { EventSender } from "../../domain/access/event-subscription/delivery-outcome.ts";
import type { Keys } from "../../keys.ts";
import { queueEvents } from "../../services/access/event-subscription/event-queueing.ts";
import { applyAttempt, nextDelivery } from "../../services/access/event-subscription/event-sending.ts";
import {
  type DueSubscription,
  findDueSubscriptions,
} from "../../store/access/event-subscription/event-subscription.ts";
import { type Store, SYSTEM, within } from "../../store/store.ts";
import type { JobFactory } from "../job.ts";
import type { JobLog } from "../start-jobs.ts";

const EVERY_MS = 1_000;

const OPERATION = "job/event-deliveries";

/** Number of due subscriptions from which one run chooses. */
const DUE_PER_RUN = 10_000;

/** Number of subscriptions that are sent to at the same time, and of those of one organization. */
const MAX_CONCURRENT = 16;
const MAX_CONCURRENT_OF_ORGANIZATION = 4;

/** Number of events that are sent to a subscription before others have their turn. */
const EVENTS_PER_TURN = 20;

/** Time after which the place of each subscription in the record is stored, whatever events it takes. */
const NOTE_EVERY_MS = 60_000;

/** The dependencies of {@link createEventDeliveries}. */
export interface DeliveriesContext {
  readonly store: Store;
  readonly keys: Pick<Keys, "open">;
  readonly eventSender: EventSender;
  readonly baseUrl: () => string;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** Cancels running attempts when the server drains; they start over after the next start. */
  readonly draining: AbortSignal;
  readonly log: JobLog;
}

/** The sending of events, which goes on between the runs of its job. */
export interface EventDeliveries {
  /** Looks for what is due and begins with it. It does not wait for the targets: a slow one delays its own events alone. */
  run(): Promise<void>;
  /** Resolves when nothing that a run has found is left. */
  settled(): Promise<void>;
}

/** Creates the sending of events: to several subscriptions at once, to each one event at a time. */
export function createEventDeliveries(context: DeliveriesContext): EventDeliveries {
  const { store, now, draining, log } = context;
  const going = new Map<string, { readonly organizationId: string; readonly turn: Promise<void> }>();
  let waiting: DueSubscription[] = [];
  let notedAt = 0;
  const isFree = ({ id, organizationId }: DueSubscription) => {
    if (going.has(id)) return false;
    const others = [...going.values()].filter((each) => each.organizationId === organizationId);
    return others.length < MAX_CONCURRENT_OF_ORGANIZATION;
  };
  const begin = (due: DueSubscription, mustNote: boolean) => {
    const turn = takeTurn(context, due, mustNote)
      .catch((err: unknown) => {
        if (!draining.aborted) log.error({ job: OPERATION, subscription: due.id, err }, "a job failed");
      })
      .finally(() => {
        going.delete(due.id);
        beginNext(mustNote);
      });
    going.set(due.id, { organizationId: due.organizationId, turn });
  };
  const beginNext = (mustNote: boolean) => {
    while (going.size < MAX_CONCURRENT && !draining.aborted) {
      const at = waiting.findIndex(isFree);
      const next = waiting[at];
      if (!next) return;
      waiting.splice(at, 1);
      begin(next, mustNote);
    }
  };
  return {
    async run() {
      const mustNote = now() - notedAt >= NOTE_EVERY_MS;
      const found = await findDueSubscriptions(store.reader, now(), DUE_PER_RUN);
      if (mustNote) notedAt = now();
      // Those that have their turn look for what is due themselves.
      waiting = found.filter(({ id }) => !going.has(id));
      beginNext(mustNote);
    },
    async settled() {
      while (going.size > 0) await Promise.all([...going.values()].map(({ turn }) => turn));
    },
  };
}

async function takeTurn(context: DeliveriesContext, due: DueSubscription, mustNote: boolean): Promise<void> {
  const { store, keys, eventSender, baseUrl, now, random, draining } = context;
  const scope = { organizationId: due.organizationId };
  await queueEvents(store, scope, due.id, OPERATION, mustNote);
  for (let sent = 0; sent < EVENTS_PER_TURN && !draining.aborted; sent++) {
    const sending = { keys, baseUrl: baseUrl(), now: now() };
    const delivery = await nextDelivery(store.reader, scope, due.id, sending);
    if (!delivery) return;
    const result = await eventSender.send(delivery, draining);
    // Killed before this, the event is sent once more, with the same id.
    await store.write(
      SYSTEM,
      OPERATION,
      (tx) => applyAttempt(tx, scope, delivery.id, result, random()),
      within(scope),
    );
  }
}

/** Sends events to the subscriptions of their organizations. */
export const eventDeliveriesJob: JobFactory = (context) => {
  const deliveries = createEventDeliveries({ ...context, random: Math.random });
  return { name: "event-deliveries", everyMs: EVERY_MS, run: () => deliveries.run() };
};
