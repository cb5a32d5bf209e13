import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { KyselyPlugin } from "kysely";
import { EventService as Contract, WatchEventsRequestSchema } from "#gen/service/v1/event_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { EventService } from "../../../src/services/access/event-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { contextOf, openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

let made: TestStore;
let home: Caller;
let away: Caller;
let service: EventService;
/** Queries of event rows. */
let reads: number;
let leaving: AbortController;
/** Whether the database fails every query of a stream. */
let isFailing: boolean;
beforeEach(async () => {
  made = openTestStore();
  home = await made.createOrganization("harbour");
  away = await made.createOrganization("lighthouse");
  reads = 0;
  isFailing = false;
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      if (JSON.stringify(node).includes('"name":"event"')) reads += 1;
      return node;
    },
    transformResult: async ({ result }) => {
      if (isFailing) throw new Error("the database fails");
      return result;
    },
  };
  const store = { ...made.store, reader: builderOf(made.store.reader).withPlugin(counting) };
  service = new EventService({ ...made.deps, store, draining: new AbortController().signal });
  leaving = new AbortController();
});
afterEach(async () => {
  leaving.abort();
  await made.close();
});

/** A stream that has caught up and waits; what it tells is read one by one. */
async function waiting(caller: Caller) {
  const ctx = contextOf(Contract.method.watchEvents, caller, leaving.signal);
  const stream = service.watchEvents(create(WatchEventsRequestSchema), ctx);
  const first = stream.next();
  // What still waits when a test ends is left by then.
  first.catch(() => undefined);
  // Everything that the stream does before it waits is done within few turns.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  return { stream, first };
}

const many = (caller: Caller, count: number) =>
  Promise.all(Array.from({ length: count }, () => waiting(caller)));

test("a hundred streams at the same place read what happened with one query", async () => {
  const streams = await many(home, 100);
  reads = 0;
  await servicesOf(made, home).project("ship");
  const received = await Promise.all(streams.map(({ first }) => first));
  expect(new Set(received.map(({ value }) => value?.resourceId)).size).toBe(1);
  expect(reads).toBe(1);
});

test("a commit of another organization wakes none of them", async () => {
  await many(home, 20);
  const [other] = await many(away, 1);
  reads = 0;
  await servicesOf(made, away).project("lamp");
  await other?.first;
  expect(reads).toBe(1);
});

test("a stream that does not take its message delays no other, and goes on where it was", async () => {
  const [slow, quick] = await many(home, 2);
  const { project } = servicesOf(made, home);
  const ids: string[] = [];
  for (const name of ["one", "two", "three"]) ids.push(await project(name));
  const seen = [(await quick?.first)?.value?.resourceId];
  while (seen.length < 3) seen.push((await quick?.stream.next())?.value?.resourceId);
  expect(seen).toEqual(ids);
  const late = [(await slow?.first)?.value?.resourceId];
  while (late.length < 3) late.push((await slow?.stream.next())?.value?.resourceId);
  expect(late).toEqual(ids);
});

test("a look-up of rights that fails ends its stream alone, and is asked again by the next", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    const { first } = await waiting(home);
    isFailing = true;
    await servicesOf(made, home).project("ship");
    await expect(first).rejects.toThrow("the database fails");
    isFailing = false;
    const next = await waiting(home);
    await servicesOf(made, home).project("boat");
    expect((await next.first).done).toBe(false);
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("nothing is asked while nothing happens, and nobody is waited for once all have left", async () => {
  const streams = await many(home, 3);
  reads = 0;
  await servicesOf(made, away).project("lamp");
  expect(reads).toBe(0);
  leaving.abort();
  await Promise.allSettled(streams.map(({ first }) => first));
  await servicesOf(made, home).project("ship");
  expect(reads).toBe(0);
});
