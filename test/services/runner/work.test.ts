import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { builderOf } from "../../../src/store/query-builder.ts";
import { type Claimant, findClaimable } from "../../../src/store/runner/claimable-work.ts";
import {
  AGENT_WITH_ENVIRONMENT,
  findWork,
  insertWork,
  type NewWork,
  readyWorkOf,
  removeWork,
  type StoredWork,
  stopHolder,
  stopWork,
} from "../../../src/store/runner/work.ts";
import {
  claimWork,
  findExpiredLeases,
  findLease,
  postponeWork,
  releaseWork,
  renewLease,
  turnIntoEnvironmentWork,
} from "../../../src/store/runner/work-lease.ts";
import { type Scope, type Store, SYSTEM, type WriteTransaction } from "../../../src/store/store.ts";
import { listenToOwnCommits } from "../../harness/own-commits.ts";
import { replay } from "../../harness/seed.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

const LEASE_MS = 30_000;

/** How often another group may be served before one that has come: in the rest of this turn and in the next one. */
const NEWCOMER = 2;

/** A group that has work in the queue. */
interface Waiting {
  /** Number of pieces of work that nobody has taken. */
  readonly count: number;
  /** How often each other group may be served before this one. */
  readonly most: number;
  /** How often each other group was served since this one was served, or came. */
  readonly passed: Map<string, number>;
}

let made: TestStore;
let store: Store;
let organizationId: string;
let runnerId: string;
let otherRunnerId: string;
beforeEach(async () => {
  made = openTestStore();
  store = made.store;
  const caller = await made.createOrganization("harbour");
  organizationId = caller.organizationId;
  const own = servicesOf(made, caller);
  ({ runnerId } = await own.runnerWithClass("north"));
  ({ runnerId: otherRunnerId } = await own.runnerWithClass("south"));
});
afterEach(() => made.close());

const write = <T>(fn: (tx: WriteTransaction) => Promise<T>) => store.write(SYSTEM, "test", fn);

const claimant = (more: Partial<Claimant> = {}): Claimant => ({
  organizationId,
  runnerIds: [runnerId],
  kinds: [],
  environmentClassIds: [],
  keeps: 0,
  ...more,
});

/** Queues work for a subject; its group is the part of the name before the dash. */
const queue = (subjectId: string, more: Partial<NewWork> = {}, scope: Scope = { organizationId }) =>
  write((tx) =>
    insertWork(tx, scope, {
      kind: WorkKind.ACTION,
      subjectId,
      groupId: subjectId.split("-")[0] ?? "",
      accountId: null,
      runnerId: null,
      environmentClassId: null,
      ...more,
    }),
  );

const claimable = async (more?: Partial<Claimant>) =>
  (await findClaimable(store.reader, claimant(more), made.clock.now, 1))[0]?.subject_id;

/** Leases work, once that is confirmed. */
async function lease(...args: Parameters<typeof claimWork>) {
  const { leased, confirmed } = await claimWork(...args);
  await confirmed;
  return leased;
}

/** Leases the next work to the runner; undefined without any. */
const take = (more?: Partial<Claimant>) =>
  write(async (tx) => {
    const [next] = await findClaimable(tx.db, claimant(more), tx.now, 1);
    return next && lease(tx, next, { runnerId, instanceId: "", leaseMs: LEASE_MS });
  });

/** Returns the handle of work that must be there. */
const idOf = (work: StoredWork | undefined) => {
  if (!work) throw new Error("there is no work");
  return work.id;
};

const takeAll = async () => {
  const subjects: string[] = [];
  for (let work = await take(); work; work = await take()) subjects.push(work.subject_id);
  return subjects;
};

describe("the queue of work", () => {
  test("gives out the work of groups in turn, however much each has given", async () => {
    for (const subject of ["a-1", "a-2", "a-3", "a-4", "b-1", "b-2", "c-1"]) await queue(subject);
    expect(await takeAll()).toEqual(["a-1", "b-1", "c-1", "a-2", "b-2", "a-3", "a-4"]);
  });

  test("is found many at once in the order in which it would be found one by one", async () => {
    const classes = Array.from({ length: 25 }, (_, index) => `class ${index}`);
    for (let index = 0; index < 40; index++) {
      const environmentClassId = classes[index % 30] ?? null;
      const kind = index % 3 === 0 ? WorkKind.ENVIRONMENT : WorkKind.ACTION;
      await queue(`${"abc"[index % 4] ?? "d"}-${index}`, { environmentClassId, kind });
    }
    const all = claimant({ kinds: [], environmentClassIds: classes });
    const found = await findClaimable(store.reader, all, made.clock.now, 32);
    expect(found).toHaveLength(32);
    const oneByOne: string[] = [];
    for (let work = await take(all); work && oneByOne.length < 32; work = await take(all)) {
      oneByOne.push(work.subject_id);
    }
    expect(found.map(({ subject_id }) => subject_id)).toEqual(oneByOne);
  });

  test("lets a group that comes late wait no longer than one turn of the others", async () => {
    for (const subject of ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3"]) await queue(subject);
    expect([(await take())?.subject_id, (await take())?.subject_id]).toEqual(["a-1", "b-1"]);
    await queue("c-1");
    await queue("c-2");
    expect(await takeAll()).toEqual(["a-2", "b-2", "c-1", "a-3", "b-3", "c-2"]);
  });

  test("lets a group that comes within a turn wait for its rest and for the next turn", async () => {
    for (const subject of ["a-1", "b-1", "b-2"]) await queue(subject);
    expect((await take())?.subject_id).toBe("a-1");
    await queue("c-1");
    expect(await takeAll()).toEqual(["b-1", "b-2", "c-1"]);
  });

  test("gives a group that rested no more than its turn afterwards", async () => {
    await queue("a-1");
    for (const subject of ["b-1", "b-2", "b-3"]) await queue(subject);
    await takeAll();
    for (const subject of ["a-2", "a-3", "b-4", "b-5"]) await queue(subject);
    expect(await takeAll()).toEqual(["a-2", "b-4", "a-3", "b-5"]);
  });

  test("gives work back to its old place, before what came later", async () => {
    for (const subject of ["a-1", "b-1", "a-2", "b-2"]) await queue(subject);
    const first = await take();
    await take();
    await write((tx) => releaseWork(tx, idOf(first)));
    expect(await takeAll()).toEqual(["a-1", "a-2", "b-2"]);
  });

  test("passes over no group: each other one is served at most once between two turns of a group", async () => {
    const group = fc.integer({ min: 0, max: 3 });
    const command = fc.oneof(
      fc.record({ kind: fc.constant("queue" as const), group, count: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ kind: fc.constant("take" as const) }),
      fc.record({ kind: fc.constant("finish" as const), which: fc.nat(7) }),
    );
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40, size: "max" }), async (commands) => {
        round += 1;
        await write(({ db }) => builderOf(db).deleteFrom("work").execute());
        const waiting = new Map<string, Waiting>();
        const held: StoredWork["id"][] = [];
        let serial = 0;
        for (const each of commands) {
          if (each.kind === "queue") {
            const name = `g${round}${each.group}`;
            for (let count = 0; count < each.count; count += 1) await queue(`${name}-${serial++}`);
            const before = waiting.get(name) ?? { count: 0, most: NEWCOMER, passed: new Map() };
            waiting.set(name, { ...before, count: before.count + each.count });
          } else if (each.kind === "take") {
            const work = await take();
            expect(work === undefined).toBe(waiting.size === 0);
            if (!work) continue;
            held.push(work.id);
            const served = work.group_id;
            const count = (waiting.get(served)?.count ?? 0) - 1;
            waiting.delete(served);
            for (const { passed, most } of waiting.values()) {
              const times = (passed.get(served) ?? 0) + 1;
              expect(times).toBeLessThanOrEqual(most);
              passed.set(served, times);
            }
            if (count > 0) waiting.set(served, { count, most: 1, passed: new Map() });
          } else {
            const [id] = held.splice(each.which % (held.length || 1), 1);
            if (id) await write((tx) => removeWork(tx, id));
          }
        }
      }),
      { ...replay, numRuns: 40 },
    );
  });

  test("has one open work of a kind for a subject", async () => {
    await queue("a-1");
    await expect(queue("a-1")).rejects.toThrow();
    await queue("a-1", { kind: WorkKind.ENVIRONMENT });
    expect((await findWork(store.reader, { organizationId }, WorkKind.ACTION, "a-1"))?.kind).toBe(
      WorkKind.ACTION,
    );
  });

  test("leaves no record", async () => {
    const before = (await made.history({ organizationId })).audit.length;
    await queue("a-1");
    await take();
    expect((await made.history({ organizationId })).audit).toHaveLength(before);
  });
});

describe("work is given only to a runner", () => {
  test("of its organization", async () => {
    const other = await made.createOrganization("island");
    await queue("a-1");
    expect(await claimable({ organizationId: other.organizationId })).toBeUndefined();
    // The turns of one organization are not those of another.
    await queue("z-1", {}, other);
    const [work] = await builderOf(store.reader)
      .selectFrom("work")
      .selectAll()
      .where("subject_id", "=", "z-1")
      .execute();
    expect(work?.turn).toBe(1);
    expect(await claimable()).toBe("a-1");
  });

  test("that it is bound to, or to any when it is bound to none", async () => {
    await queue("a-1", { runnerId: otherRunnerId });
    expect(await claimable()).toBeUndefined();
    expect(await claimable({ runnerIds: [runnerId, otherRunnerId] })).toBe("a-1");
    await queue("b-1");
    expect(await claimable()).toBe("b-1");
    const work = await findWork(store.reader, { organizationId }, WorkKind.ACTION, "b-1");
    await write(async (tx) => {
      if (!work) throw new Error("there is no work");
      const leasedAs = { ...work, runner_id: otherRunnerId };
      await lease(tx, work, { runnerId, instanceId: "", leaseMs: LEASE_MS, leasedAs });
      await releaseWork(tx, work.id);
    });
    expect(await claimable()).toBeUndefined();
  });

  test("that serves its class, or to any when it has none", async () => {
    await queue("a-1", { environmentClassId: "small" });
    expect(await claimable()).toBeUndefined();
    expect(await claimable({ environmentClassIds: ["large"] })).toBeUndefined();
    expect(await claimable({ environmentClassIds: ["large", "small"] })).toBe("a-1");
    await queue("b-1");
    expect(await claimable({ environmentClassIds: ["large"] })).toBe("b-1");
  });

  test("that takes its kind", async () => {
    await queue("a-1");
    expect(await claimable({ kinds: [WorkKind.ENVIRONMENT, WorkKind.PREBUILD] })).toBeUndefined();
    expect(await claimable({ kinds: [WorkKind.ENVIRONMENT, WorkKind.ACTION] })).toBe("a-1");
  });

  test("from the instant on that it is put off to", async () => {
    await queue("a-1");
    const work = await findWork(store.reader, { organizationId }, WorkKind.ACTION, "a-1");
    await write((tx) => postponeWork(tx, idOf(work), tx.now + 5_000));
    made.clock.now += 4_999;
    expect(await claimable()).toBeUndefined();
    made.clock.now += 1;
    expect(await claimable()).toBe("a-1");
  });
});

describe("a lease", () => {
  test("has a fence and an attempt that grow each time the work is given out", async () => {
    await queue("a-1");
    const first = await take();
    expect(first).toMatchObject({ fence: 1, attempt: 1, leased_by: runnerId });
    expect(await claimable()).toBeUndefined();
    await write((tx) => releaseWork(tx, idOf(first)));
    expect(await findLease(store.reader, { organizationId }, first?.id ?? "")).toMatchObject({
      leased_by: null,
      fence: 1,
      stop: 0,
    });
    expect(await take()).toMatchObject({ id: first?.id, fence: 2, attempt: 2 });
  });

  test("is nothing to another organization, also by its id or subject", async () => {
    const other = await made.createOrganization("island");
    await queue("a-1");
    const work = await take();
    expect(await findLease(store.reader, other, idOf(work))).toBeUndefined();
    expect(await findLease(store.reader, { organizationId }, idOf(work))).toBeDefined();
    expect(await findWork(store.reader, other, WorkKind.ACTION, "a-1")).toBeUndefined();
    expect(await write((tx) => stopWork(tx, other, WorkKind.ACTION, "a-1"))).toBe("none");
    await write((tx) => stopHolder(tx, other, WorkKind.ACTION, "a-1"));
    expect(await findWork(store.reader, { organizationId }, WorkKind.ACTION, "a-1")).toMatchObject({
      stop: 0,
    });
  });

  test("is given once, also when two find the same work", async () => {
    await queue("a-1");
    const [next] = await findClaimable(store.reader, claimant(), made.clock.now, 1);
    if (!next) throw new Error("no work");
    const claim = () => write((tx) => lease(tx, next, { runnerId, instanceId: "", leaseMs: LEASE_MS }));
    await claim();
    await expect(claim()).rejects.toThrow("is leased already");
  });

  test("runs out at its end, not before, and later when it is renewed", async () => {
    await queue("a-1");
    const work = await take();
    const expired = async () =>
      (await findExpiredLeases(store.reader, made.clock.now, 10)).map(({ id }) => id);
    made.clock.now += LEASE_MS - 1;
    expect(await expired()).toEqual([]);
    await write((tx) => renewLease(tx, idOf(work), tx.now + 10));
    made.clock.now += 9;
    expect(await expired()).toEqual([]);
    made.clock.now += 1;
    expect(await expired()).toEqual([work?.id]);
    await write((tx) => releaseWork(tx, idOf(work)));
    expect(await expired()).toEqual([]);
  });

  test("tells whether the account that its work is done for is cut off", async () => {
    const { id: accountId } = await builderOf(store.reader)
      .selectFrom("account")
      .select("id")
      .executeTakeFirstOrThrow();
    await queue("a-1", { accountId });
    const work = await take();
    expect((await findLease(store.reader, { organizationId }, work?.id ?? ""))?.blocked_at).toBe(null);
    await write(({ db, now }) => builderOf(db).updateTable("account").set({ blocked_at: now }).execute());
    expect((await findLease(store.reader, { organizationId }, work?.id ?? ""))?.blocked_at).toBe(
      made.clock.now,
    );
  });
});

describe("stopping work", () => {
  test("takes it out of the queue while nobody has it, and tells the runner that has it", async () => {
    await queue("a-1");
    await queue("b-1");
    const held = await take();
    const stop = (subject: string) =>
      write((tx) => stopWork(tx, { organizationId }, WorkKind.ACTION, subject));
    expect(await stop("b-1")).toBe("removed");
    expect(await stop("b-1")).toBe("none");
    expect(await stop("a-1")).toBe("stopping");
    expect(await stop("a-1")).toBe("stopping");
    expect((await findLease(store.reader, { organizationId }, held?.id ?? ""))?.stop).toBe(1);
    expect(await claimable()).toBeUndefined();
  });
});

test("new work wakes the runners that wait for its kind, and no others", async () => {
  const woken: string[] = [];
  const { onChange } = listenToOwnCommits(store);
  for (const kind of [WorkKind.ACTION, WorkKind.ENVIRONMENT]) {
    onChange(readyWorkOf(organizationId, kind), () => woken.push(WorkKind[kind]));
  }
  await queue("a-1");
  expect(woken).toEqual(["ACTION"]);
  const work = await take();
  await write((tx) => releaseWork(tx, idOf(work)));
  expect(woken).toEqual(["ACTION", "ACTION"]);
  await queue("e-1", { kind: AGENT_WITH_ENVIRONMENT });
  const both = await findWork(store.reader, { organizationId }, WorkKind.ENVIRONMENT, "e-1");
  await write((tx) => turnIntoEnvironmentWork(tx, idOf(both), WorkKind.ENVIRONMENT, "e-1"));
  expect(woken).toEqual(["ACTION", "ACTION", "ENVIRONMENT"]);
});

describe("a new environment that an agent waits for", () => {
  test.each([
    { asks: { kinds: [WorkKind.AGENT], agentsWithEnvironment: true }, gets: "e-1" },
    { asks: { kinds: [WorkKind.ENVIRONMENT], agentsWithEnvironment: true }, gets: undefined },
    { asks: { kinds: [WorkKind.AGENT] }, gets: undefined },
    { asks: { kinds: [WorkKind.ENVIRONMENT] }, gets: "e-1" },
    { asks: { kinds: [] }, gets: "e-1" },
    { asks: { kinds: [], agentsWithEnvironment: true }, gets: "e-1" },
  ])("is given to a runner that asks for $asks: $gets", async ({ asks, gets }) => {
    await queue("e-1", { kind: AGENT_WITH_ENVIRONMENT });
    expect(await claimable(asks)).toBe(gets);
  });
});
