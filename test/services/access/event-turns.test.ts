import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { EventDeliveryVerdict as Verdict } from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService as Contract } from "#gen/service/v1/event_subscription_service_pb.js";
import { createEventDeliveries, type EventDeliveries } from "../../../src/jobs/hosts/event-deliveries.ts";
import { EventSubscriptionService } from "../../../src/services/access/event-subscription/event-subscription-service.ts";
import { openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { until } from "../../harness/until.ts";
import { servicesOf } from "../services.ts";

/** Time that a target takes for an event in which others could have their turn. */
const SLOW_MS = 1_000;

let testStore: TestStore;
let deliveries: EventDeliveries;
/** Targets by the names of their subscriptions, in the order in which events were sent to them. */
let asked: string[];
/** Those that have not answered yet, each with what makes it answer, or fail the turn. */
let open: { readonly name: string; readonly end: (error?: Error) => void }[];
/** Whether targets answer at once. */
let isFast: boolean;
let failures: object[];
beforeEach(() => {
  testStore = openTestStore();
  [asked, open, failures, isFast] = [[], [], [], false];
  const { store, keys, clock } = testStore;
  deliveries = createEventDeliveries({
    store,
    keys,
    eventSender: {
      send: ({ url }) =>
        new Promise((resolve, reject) => {
          const name = new URL(url).pathname.slice(1);
          const result = {
            verdict: Verdict.ACCEPTED,
            statusCode: 204,
            detail: "answered 204",
            durationMs: 0,
          };
          asked.push(name);
          if (isFast) resolve(result);
          else open.push({ name, end: (error) => (error ? reject(error) : resolve(result)) });
        }),
    },
    baseUrl: () => "https://chartroom.example",
    now: () => clock.now,
    random: () => 0.5,
    draining: new AbortController().signal,
    log: { error: (facts: object) => failures.push(facts) },
  });
});
afterEach(() => testStore.close());

/** Makes an organization with slow targets, each of which has so many events to get. */
async function organization(name: string, targets: readonly string[], events: number): Promise<void> {
  const caller = await testStore.createOrganization(name);
  const service = new EventSubscriptionService({ ...testStore.deps, eventHosts: new Set<string>() });
  for (const target of targets) {
    await operationsOf(Contract, service, caller).createEventSubscription({
      name: target,
      url: `https://hooks.example.org/${target}`,
      eventKinds: ["project.created"],
    });
  }
  for (let event = 0; event < events; event++) await servicesOf(testStore, caller).project(`p${event}`);
}

const waitFor = (count: number) =>
  until(
    () => asked.length,
    (present) => present >= count,
  );

/** Ends the event that is sent to a target, after a time. */
function end(name: string, error?: Error): void {
  testStore.clock.now += SLOW_MS;
  const at = open.findIndex((each) => each.name === name);
  open.splice(at, 1)[0]?.end(error);
}

/** Ends what is sent until nothing is left. */
async function endAll(): Promise<void> {
  const settled = deliveries.settled();
  let isOver = false;
  void settled.then(() => {
    isOver = true;
  });
  await until(
    () => {
      for (const { name } of [...open]) end(name);
      return isOver;
    },
    (over) => over,
  );
}

test("a slow target has one event of its turn, and a fast one twenty", async () => {
  await organization("harbour", ["slow"], 22);
  await deliveries.run();
  await waitFor(1);
  await endAll();
  expect(asked).toHaveLength(1);
  isFast = true;
  await deliveries.run();
  await deliveries.settled();
  expect(asked).toHaveLength(21);
});

test("slow targets go behind those that wait, however often what is due is looked for", async () => {
  await organization("harbour", ["a", "b", "c", "d", "e", "f"], 3);
  await deliveries.run();
  await waitFor(4);
  const [first = "", second = ""] = asked;
  end(first);
  await waitFor(5);
  // The first is due again, and found next to the one that waits.
  await deliveries.run();
  end(second);
  await waitFor(6);
  expect(new Set(asked).size).toBe(6);
  await endAll();
});

test("organizations whose targets are slow leave a turn to another", async () => {
  for (const name of ["a", "b", "c", "d"]) {
    const targets = [1, 2, 3, 4, 5].map((number) => `${name}${number}`);
    await organization(name, targets, 1);
  }
  await organization("last", ["last"], 1);
  await deliveries.run();
  await waitFor(16);
  expect(asked).toContain("last");
  await endAll();
  expect([asked.length, new Set(asked).size]).toEqual([21, 21]);
});

test("a subscription rests for ten seconds after a turn that failed", async () => {
  await organization("harbour", ["a"], 1);
  await deliveries.run();
  await waitFor(1);
  end("a", new Error("nothing can be stored"));
  await deliveries.settled();
  expect(failures).toHaveLength(1);
  testStore.clock.now += 9_999;
  await deliveries.run();
  await deliveries.settled();
  expect(asked).toHaveLength(1);
  testStore.clock.now += 1;
  await deliveries.run();
  await waitFor(2);
  await endAll();
});
