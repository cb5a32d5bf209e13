import type { EventSender } from "../../domain/access/event-subscription/delivery-outcome.ts";
import type { Keys } from "../../keys.ts";
import { queueEvents } from "../../services/access/event-subscription/event-queueing.ts";
import { applyAttempt, nextDelivery } from "../../services/access/event-subscription/event-sending.ts";
import {
  type DueSubscription,
  findDueSubscriptions,
} from "../../store/access/event-subscription/event-subscription.ts";
import { type Scope, type Store, SYSTEM, within } from "../../store/store.ts";
import type { JobFactory } from "../job.ts";
import type { JobLog } from "../start-jobs.ts";

const EVERY_MS = 1_000;

const OPERATION = "job/event-deliveries";

/** Number of due subscriptions from which one run chooses. */
const DUE_PER_RUN = 10_000;

/** Maximum number of subscriptions that are sent to at the same time, in total and per organization. */
const MAX_CONCURRENT = 16;
const MAX_CONCURRENT_OF_ORGANIZATION = 4;

/** Number of events that are sent to a subscription before others get their turn. */
const EVENTS_PER_TURN = 20;

/** Time after which a turn ends with the event being sent: a slow target gets one event per turn. */
const TURN_MS = 1_000;

/** Pause of a subscription after a turn whose result could not be stored; the event is sent again afterwards. */
const REST_MS = 10_000;

/** Interval at which the position of each subscription in the record is stored, even if no event matched. */
const UPDATE_EVERY_MS = 60_000;

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

/** The sending of events, which continues between the runs of its job. */
export interface EventDeliveries {
  /**
   * Finds due subscriptions and starts sending. It does not wait for the targets: a slow one delays only its own
   * events.
   */
  run(): Promise<void>;
  /** Resolves when everything that a run has found is done. */
  settled(): Promise<void>;
}

/** Creates the sender of events: to several subscriptions at once, one event at a time to each. */
export function createEventDeliveries(context: DeliveriesContext): EventDeliveries {
  const { store, now, draining, log } = context;
  const running = new Map<string, { readonly organizationId: string; readonly turn: Promise<void> }>();
  /** Subscriptions whose turn has failed, with the ends of their pauses. */
  const resting = new Map<string, number>();
  /** In the order of their turns. */
  let waiting: DueSubscription[] = [];
  let updatedAt = 0;
  const begin = (due: DueSubscription, mustUpdate: boolean) => {
    const turn = takeTurn(context, due, mustUpdate)
      .catch((err: unknown) => {
        if (draining.aborted) return;
        resting.set(due.id, now() + REST_MS);
        log.error({ job: OPERATION, subscription: due.id, err }, "a job failed");
      })
      .finally(() => {
        running.delete(due.id);
        beginNext(mustUpdate);
      });
    running.set(due.id, { organizationId: due.organizationId, turn });
  };
  const beginNext = (mustUpdate: boolean) => {
    while (running.size < MAX_CONCURRENT && !draining.aborted) {
      const at = indexOfNext(waiting, [...running.values()]);
      const next = waiting[at];
      if (!next) return;
      waiting.splice(at, 1);
      begin(next, mustUpdate);
    }
  };
  return {
    async run() {
      const mustUpdate = now() - updatedAt >= UPDATE_EVERY_MS;
      const found = await findDueSubscriptions(store.reader, now(), DUE_PER_RUN);
      if (mustUpdate) updatedAt = now();
      for (const [id, until] of resting) if (until <= now()) resting.delete(id);
      waiting = inOrder(
        waiting,
        // Subscriptions in their turn check by themselves what is due.
        found.filter(({ id }) => !running.has(id) && !resting.has(id)),
      );
      beginNext(mustUpdate);
    },
    async settled() {
      while (running.size > 0) await Promise.all([...running.values()].map(({ turn }) => turn));
    },
  };
}

/** Returns the due subscriptions: first those already waiting, since one that has had its turn goes to the end. */
function inOrder(before: readonly DueSubscription[], due: readonly DueSubscription[]): DueSubscription[] {
  const dueIds = new Set(due.map(({ id }) => id));
  const waited = before.filter(({ id }) => dueIds.has(id));
  const waitedIds = new Set(waited.map(({ id }) => id));
  return [...waited, ...due.filter(({ id }) => !waitedIds.has(id))];
}

/** Returns the index of the first subscription of the organization with the fewest turns; -1 if none may run. */
function indexOfNext(waiting: readonly DueSubscription[], running: readonly Scope[]): number {
  const turns = new Map<string, number>();
  for (const { organizationId: id } of running) turns.set(id, (turns.get(id) ?? 0) + 1);
  const turnsOf = ({ organizationId }: Scope) => turns.get(organizationId) ?? 0;
  const fewest = Math.min(...new Set(waiting.map(turnsOf)));
  if (fewest >= MAX_CONCURRENT_OF_ORGANIZATION) return -1;
  return waiting.findIndex((each) => turnsOf(each) === fewest);
}

async function takeTurn(
  context: DeliveriesContext,
  due: DueSubscription,
  mustUpdate: boolean,
): Promise<void> {
  const { store, keys, eventSender, baseUrl, now, random, draining } = context;
  const scope = { organizationId: due.organizationId };
  await queueEvents(store, scope, due.id, OPERATION, mustUpdate);
  const began = now();
  const hasTime = () => now() - began < TURN_MS && !draining.aborted;
  for (let sent = 0; sent < EVENTS_PER_TURN && hasTime(); sent++) {
    const sending = { keys, baseUrl: baseUrl(), now: now() };
    const delivery = await nextDelivery(store.reader, scope, due.id, sending);
    if (!delivery) return;
    const result = await eventSender.send(delivery, draining);
    // If the process is killed before this, the event is sent once more, with the same id.
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
