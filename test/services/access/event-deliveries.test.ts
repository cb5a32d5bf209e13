import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  type EventDelivery,
  EventDeliveryState as State,
  EventSubscriptionState as SubscriptionState,
  EventDeliveryVerdict as Verdict,
} from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService as Contract } from "#gen/service/v1/event_subscription_service_pb.js";
import type { OutgoingDelivery } from "../../../src/domain/access/event-subscription/delivery-outcome.ts";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { createEventDeliveries, type EventDeliveries } from "../../../src/jobs/hosts/event-deliveries.ts";
import { pruneEventDeliveries } from "../../../src/jobs/retention/ledger-pruning.ts";
import { keysFrom } from "../../../src/keys.ts";
import { EventSubscriptionService } from "../../../src/services/access/event-subscription/event-subscription-service.ts";
import {
  openTarget,
  reencryptSubscriptions,
} from "../../../src/services/access/event-subscription/subscription-secrets.ts";
import { insertDeliveries } from "../../../src/store/access/event-subscription/event-delivery.ts";
import { findSubscription } from "../../../src/store/access/event-subscription/event-subscription.ts";
import { countInstallation, countOrganization } from "../../../src/store/access/installation-counts.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { findPrunableEvents, removeEvents } from "../../../src/store/record/event-pruning.ts";
import { SYSTEM, type WriteTransaction, within } from "../../../src/store/store.ts";
import { DAY_MS, MINUTE_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

const HOUR_MS = 60 * MINUTE_MS;
const URL_OF = "https://hooks.example.org/services/T0/canary";

let testStore: TestStore;
let caller: Caller;
let deliveries: EventDeliveries;
let draining: AbortController;
/** What was sent, in the order of the attempts. */
let sent: (OutgoingDelivery & { readonly type: string; readonly resourceId: string })[];
/** The status that the target answers with. */
let status: number;
/** Whether the server ends while the target answers. */
let endsInBetween: boolean;
const failures: object[] = [];
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  draining = new AbortController();
  sent = [];
  status = 204;
  endsInBetween = false;
  failures.length = 0;
  deliveries = sending();
});
afterEach(async () => {
  await testStore.close();
  expect(failures).toEqual([]);
});

function sending(): EventDeliveries {
  const { store, keys, clock } = testStore;
  return createEventDeliveries({
    store,
    keys,
    eventSender: {
      async send(delivery, signal) {
        signal.throwIfAborted();
        const { type, data } = JSON.parse(delivery.body);
        sent.push({ ...delivery, type, resourceId: data.resourceId });
        if (endsInBetween) draining.abort();
        signal.throwIfAborted();
        const verdict = status < 300 ? Verdict.ACCEPTED : Verdict.REFUSED;
        return { verdict, statusCode: status, detail: `answered ${status}`, durationMs: 0 };
      },
    },
    baseUrl: () => "https://chartroom.example",
    now: () => clock.now,
    // No earlier and no later than the table says.
    random: () => 0.5,
    draining: draining.signal,
    log: { error: (facts: object) => failures.push(facts) },
  });
}

const operations = (as = caller) =>
  operationsOf(
    Contract,
    new EventSubscriptionService({ ...testStore.deps, eventHosts: new Set<string>() }),
    as,
  );
async function subscribe(eventKinds: string[] = ["project.created"]) {
  const made = await operations().createEventSubscription({ name: "Chat", url: URL_OF, eventKinds });
  return { id: made.eventSubscription?.id ?? "", secret: made.secret };
}
const project = (name: string) => servicesOf(testStore, caller).project(name);
async function run(): Promise<void> {
  await deliveries.run();
  await deliveries.settled();
}
const ledger = async (eventSubscriptionId: string): Promise<EventDelivery[]> =>
  (await operations().listEventDeliveries({ eventSubscriptionId, pagination: { pageSize: 100 } }))
    .eventDeliveries;
async function present(eventSubscriptionId: string) {
  const { eventSubscription } = await operations().getEventSubscription({ eventSubscriptionId });
  if (!eventSubscription) throw new Error("the subscription is gone");
  return eventSubscription;
}
const write = <T>(fn: (tx: WriteTransaction) => Promise<T>) =>
  testStore.store.write(SYSTEM, "test", fn, within(caller));

describe("events of a subscription", () => {
  test("are sent once, in their order, from its creation on, and are signed with its secret", async () => {
    await project("before");
    const { id, secret } = await subscribe();
    const made = [await project("one"), await project("two"), await project("three")];
    await run();
    await run();
    expect(sent.map(({ resourceId }) => resourceId)).toEqual(made);
    expect(sent[0]).toMatchObject({ url: URL_OF, type: "project.created", secrets: [secret] });
    const entries = await ledger(id);
    expect(entries.map(({ resourceId, state }) => [resourceId, state])).toEqual(
      made.toReversed().map((each) => [each, State.DELIVERED]),
    );
    expect(entries[0]?.attempts).toMatchObject([{ verdict: Verdict.ACCEPTED, statusCode: 204 }]);
    expect(entries[0]?.nextAttemptAt).toBeUndefined();
    expect(sent.map((each) => each.id)).toEqual(entries.toReversed().map((each) => each.id));
  });

  test("are those of its organization alone", async () => {
    const { id } = await subscribe(["*"]);
    await run();
    sent = [];
    const other = await testStore.createOrganization("mill");
    await servicesOf(testStore, other).project("theirs");
    await run();
    expect(sent).toEqual([]);
    await expect(operations(other).getEventSubscription({ eventSubscriptionId: id })).rejects.toThrow(
      "not found",
    );
    await expect(operations(other).listEventDeliveries({ eventSubscriptionId: id })).rejects.toThrow(
      "not found",
    );
    const [own] = await ledger(id);
    await expect(operations(other).redeliverEvent({ eventDeliveryId: own?.id ?? "" })).rejects.toThrow(
      "not found",
    );
  });

  test("go on where they were after a restart", async () => {
    const { id } = await subscribe();
    await project("one");
    await run();
    await project("two");
    deliveries = sending();
    await run();
    expect(sent).toHaveLength(2);
    expect(await ledger(id)).toHaveLength(2);
  });

  test("are not sent to one that is paused, and are when it is resumed", async () => {
    const { id } = await subscribe();
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: true });
    await project("one");
    await run();
    expect(sent).toEqual([]);
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: false });
    await run();
    expect(sent).toHaveLength(1);
  });

  test("that wait are counted, apart from those of subscriptions that are paused", async () => {
    const count = async (scope?: Caller) => {
      const { now } = testStore.clock;
      const times = { now, until: now };
      const { eventDeliveries, eventSubscriptions } = scope
        ? await countOrganization(testStore.store.reader, scope, times)
        : await countInstallation(testStore.store.reader, times);
      return { ...eventDeliveries, subscriptions: eventSubscriptions };
    };
    const none = { waiting: 0, paused: 0, oldestId: undefined };
    expect(await count()).toEqual({ ...none, subscriptions: [] });
    const { id } = await subscribe();
    status = 500;
    await project("one");
    await project("two");
    await run();
    const [, first] = await ledger(id);
    const subscriptions = [{ of: SubscriptionState.ACTIVE, count: 1 }];
    expect(await count()).toEqual({ waiting: 2, paused: 0, oldestId: first?.id, subscriptions });
    expect(await count(caller)).toEqual(await count());
    const other = await testStore.createOrganization("lighthouse");
    expect(await count(other)).toEqual({ ...none, subscriptions: [] });
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: true });
    const paused = [{ of: SubscriptionState.PAUSED, count: 1 }];
    expect(await count()).toEqual({ ...none, paused: 2, subscriptions: paused });
    status = 204;
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: false });
    testStore.clock.now += MINUTE_MS;
    await run();
    expect(await count()).toEqual({ ...none, subscriptions });
  });

  test("that were removed before they were sent are reported", async () => {
    const { id } = await subscribe();
    await project("one");
    const bound = { before: Number.MAX_SAFE_INTEGER, upTo: 0, spared: 0 };
    const events = await findPrunableEvents(testStore.store.reader, caller, bound, 0, 100);
    await write((tx) => removeEvents(tx, caller, 0, events.at(-1)?.sequence ?? 0));
    await project("two");
    await run();
    expect(sent.map(({ type }) => type)).toEqual(["organization.history_pruned", "project.created"]);
    const [newest] = await ledger(id);
    expect((await present(id)).sequence).toBeGreaterThanOrEqual(newest?.sequence ?? 0n);
  });

  test("of an organization without matching ones move its place in the record each minute", async () => {
    const { id } = await subscribe(["runner.deleted"]);
    const { sequence } = await present(id);
    await run();
    await project("one");
    await run();
    expect((await present(id)).sequence).toBeLessThan(sequence + 3n);
    testStore.clock.now += MINUTE_MS;
    await run();
    const { events } = await testStore.history(caller);
    expect((await present(id)).sequence).toBe(BigInt(events.at(-1)?.sequence ?? 0));
    expect(await ledger(id)).toEqual([]);
  });
});

test("events that are far apart in the record are found by steps of 10,000 numbers", async () => {
  const { id } = await subscribe();
  const { sequence } = await present(id);
  const end = Number(sequence) + 1;
  const step = 10_000;
  await write(({ db }) =>
    builderOf(db)
      .updateTable("organization")
      .set({ sequence: end + 2 * step - 2 })
      .where("id", "=", caller.organizationId)
      .execute(),
  );
  // Its event has the last number of the second step.
  await project("late");
  await run();
  expect([sent.length, (await present(id)).sequence]).toEqual([0, sequence + BigInt(step)]);
  await run();
  expect([sent.length, (await present(id)).sequence]).toEqual([1, sequence + BigInt(2 * step)]);
});

describe("a target that takes nothing", () => {
  test("is tried again by the table, with the same id, before later events, and given up after nine attempts", async () => {
    const { id } = await subscribe();
    const [first, second] = [await project("one"), await project("two")];
    status = 500;
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 9; attempt++) {
      await run();
      const attempts = sent.filter(({ resourceId }) => resourceId === first);
      expect(attempts).toHaveLength(attempt);
      const waiting = (await ledger(id)).find((each) => each.resourceId === first);
      if (!waiting?.nextAttemptAt) break;
      const due = timestampMs(waiting.nextAttemptAt);
      waits.push((due - testStore.clock.now) / 1_000);
      testStore.clock.now = due - 1;
      await run();
      expect(sent).toHaveLength(attempt);
      testStore.clock.now = due;
    }
    expect(waits).toEqual([5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400]);
    // The ninth attempt was the last of the first event, and the second one has had its first.
    expect(sent.map(({ resourceId }) => resourceId)).toEqual([...Array(9).fill(first), second]);
    expect(new Set(sent.slice(0, 9).map((each) => each.id)).size).toBe(1);
    const [later, given] = await ledger(id);
    expect([given?.state, given?.attempts.length]).toEqual([State.FAILED, 9]);
    expect(later).toMatchObject({ resourceId: second, state: State.PENDING });
    expect((await present(id)).failingSince).toBeDefined();
    status = 200;
    testStore.clock.now += HOUR_MS;
    await run();
    expect([...testStore.store.measures.outcomes("event delivery")]).toEqual([
      ["refused", 10],
      ["accepted", 1],
    ]);
    expect((await present(id)).failingSince).toBeUndefined();
    expect((await ledger(id))[0]?.state).toBe(State.DELIVERED);
  });

  test("pauses its subscription after a day, with an event and an entry of the audit log", async () => {
    const { id } = await subscribe();
    await project("one");
    status = 503;
    await run();
    testStore.clock.now += DAY_MS - 1;
    await run();
    expect((await present(id)).state).toBe(SubscriptionState.ACTIVE);
    await operations().redeliverEvent({ eventDeliveryId: (await ledger(id))[0]?.id ?? "" });
    testStore.clock.now += 1;
    await run();
    expect((await present(id)).state).toBe(SubscriptionState.PAUSED_BY_SERVER);
    const { audit, events } = await testStore.history(caller);
    expect(audit.at(-1)).toMatchObject({
      actor_id: "system",
      operation: "job/event-deliveries",
      subject_type: "event_subscription",
      subject_id: id,
      reason: "the target has accepted nothing for 24 hours",
    });
    expect(events.at(-1)).toMatchObject({ kind: "updated", resource_type: "event_subscription" });
    const attempts = sent.length;
    testStore.clock.now += DAY_MS;
    await run();
    expect(sent).toHaveLength(attempts);
    status = 200;
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: false });
    await run();
    expect(sent).toHaveLength(attempts + 1);
    expect(await present(id)).toMatchObject({ state: SubscriptionState.ACTIVE });
  });

  test("pauses it at once where it says that it is gone", async () => {
    const { id } = await subscribe();
    await project("one");
    status = 410;
    await run();
    expect((await present(id)).state).toBe(SubscriptionState.PAUSED_BY_SERVER);
  });

  test("delays no other subscription", async () => {
    const [failing, other] = [await subscribe(), await subscribe()];
    await project("one");
    status = 500;
    await run();
    status = 200;
    await project("two");
    testStore.clock.now += 1;
    await operations().redeliverEvent({ eventDeliveryId: (await ledger(other.id)).at(-1)?.id ?? "" });
    await run();
    expect((await ledger(other.id)).map(({ state }) => state)).toEqual([State.DELIVERED, State.DELIVERED]);
    // The one whose attempt is not due yet has not even taken the second.
    expect((await ledger(failing.id)).map(({ state }) => state)).toEqual([State.PENDING]);
  });
});

describe("a redelivery", () => {
  test("sends an event again with its id, once, and holds up nothing", async () => {
    const { id } = await subscribe();
    await project("one");
    await run();
    const [entry] = await ledger(id);
    status = 500;
    const asked = await operations().redeliverEvent({ eventDeliveryId: entry?.id ?? "" });
    expect(asked.eventDelivery?.state).toBe(State.REDELIVERING);
    await run();
    await run();
    expect(sent.map((each) => each.id)).toEqual([entry?.id, entry?.id]);
    const [again] = await ledger(id);
    expect(again).toMatchObject({
      state: State.FAILED,
      attempts: [{ statusCode: 204 }, { statusCode: 500 }],
    });
    status = 204;
    await project("two");
    await run();
    expect((await ledger(id))[0]?.state).toBe(State.DELIVERED);
  });

  test("is refused while the subscription is paused", async () => {
    const { id } = await subscribe();
    await project("one");
    await run();
    await operations().updateEventSubscription({ eventSubscriptionId: id, paused: true });
    const eventDeliveryId = (await ledger(id))[0]?.id ?? "";
    await expect(operations().redeliverEvent({ eventDeliveryId })).rejects.toThrow("is paused");
  });
});

describe("the secret of a subscription", () => {
  test("is replaced, and the former one signs for 24 hours more", async () => {
    const { id, secret } = await subscribe();
    const rotated = await operations().rotateEventSubscriptionSecret({ eventSubscriptionId: id });
    expect(rotated.secret).toMatch(/^whsec_/);
    expect(rotated.secret).not.toBe(secret);
    await project("one");
    testStore.clock.now += DAY_MS - 1;
    await run();
    testStore.clock.now += 1;
    await project("two");
    await run();
    expect(sent.map(({ secrets }) => secrets)).toEqual([[rotated.secret, secret], [rotated.secret]]);
  });

  test("and the address are sealed, recorded as replaced alone, and sealed again with another key", async () => {
    const { id, secret } = await subscribe();
    await operations().rotateEventSubscriptionSecret({ eventSubscriptionId: id });
    const url = "https://other.example.org/canary";
    await operations().updateEventSubscription({ eventSubscriptionId: id, url });
    const { audit } = await testStore.history(caller);
    const texts = JSON.stringify(audit.map(({ diff }) => diff));
    expect(texts).not.toMatch("canary");
    expect(texts).not.toMatch("whsec_");
    expect(texts).toMatch("(new secret)");
    expect(texts).toMatch("(new url)");
    const { store } = testStore;
    const newer = keysFrom(new Uint8Array(32).fill(9), new Uint8Array(32).fill(7));
    expect(await reencryptSubscriptions(store, newer)).toBe(1);
    expect(await reencryptSubscriptions(store, newer)).toBe(0);
    const stored = await findSubscription(store.reader, caller, id);
    expect(stored?.sealed.key_id).toBe(newer.id);
    const target = stored && openTarget(keysFrom(new Uint8Array(32).fill(9)), id, stored.sealed);
    expect(target).toMatchObject({ url, former: { secret } });
  });
});

describe("a ledger", () => {
  test("is kept as long as those of triggers, but for what is still to be sent", async () => {
    const { id } = await subscribe();
    await project("one");
    await run();
    status = 500;
    await project("two");
    await run();
    const prune = () =>
      pruneEventDeliveries(testStore.store, caller, { days: 30, count: 0 }, testStore.clock.now);
    testStore.clock.now += 30 * DAY_MS - 1;
    expect(await prune()).toBe(0);
    testStore.clock.now += 2;
    expect(await prune()).toBe(1);
    expect((await ledger(id)).map(({ state }) => state)).toEqual([State.PENDING]);
  });

  test("keeps 10,000 entries where nothing else bounds it", async () => {
    const { id } = await subscribe();
    await project("one");
    await run();
    const [entry] = await ledger(id);
    if (!entry) throw new Error("nothing was sent");
    for (let part = 0; part < 20; part++) {
      const copies = Array.from({ length: 500 }, () => ({ ...entry, id: testStore.newId() }));
      await write((tx) => insertDeliveries(tx, caller, copies));
    }
    const keep = { days: 0, count: 0 };
    expect(await pruneEventDeliveries(testStore.store, caller, keep, testStore.clock.now)).toBe(1);
    expect(await pruneEventDeliveries(testStore.store, caller, keep, testStore.clock.now)).toBe(0);
  });

  test("goes with its subscription, and what waits is not sent", async () => {
    const { id } = await subscribe();
    await project("one");
    status = 500;
    await run();
    await operations().deleteEventSubscription({ eventSubscriptionId: id });
    testStore.clock.now += DAY_MS;
    await run();
    expect(sent).toHaveLength(1);
    await expect(ledger(id)).rejects.toThrow("not found");
  });
});

test("an organization has 20 subscriptions at most", async () => {
  for (let made = 0; made < 20; made++) await subscribe();
  await expect(subscribe()).rejects.toThrow("20 event subscriptions");
});

test("a server that ends before it has noted an attempt sends the event again, with the same id", async () => {
  const { id } = await subscribe();
  await project("one");
  endsInBetween = true;
  await run();
  expect((await ledger(id)).map(({ state, attempts }) => [state, attempts.length])).toEqual([
    [State.PENDING, 0],
  ]);
  endsInBetween = false;
  draining = new AbortController();
  deliveries = sending();
  await run();
  expect(sent.map((each) => each.id)).toEqual([sent[0]?.id, sent[0]?.id]);
  expect((await ledger(id)).map(({ state, attempts }) => [state, attempts.length])).toEqual([
    [State.DELIVERED, 1],
  ]);
});

test("a server that drains sends no more, and stores nothing of what it has cancelled", async () => {
  const { id } = await subscribe();
  await project("one");
  draining.abort();
  await run();
  expect([sent, await ledger(id)]).toEqual([[], []]);
});
