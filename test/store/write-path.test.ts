import { connect } from "node:net";
import { performance } from "node:perf_hooks";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Actor, type Store, SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { stopAll } from "../harness/server.ts";
import {
  auditOf,
  change,
  eventsOf,
  expectWholeRecord,
  factsIn,
  NOW_MS,
  ONE,
  openAt,
  openWithOrganizations,
  put,
  TWO,
} from "./made-up-changes.ts";
import { AUDIT } from "./record/audit-seal.ts";

const ACTOR: Actor = { id: "0192d3c0-0000-7000-8000-0000000000aa", principal: 2 };

let dataDir: string;
let store: Store;

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

const isPostgres = postgresUrl() !== undefined;
const ONE_BY_ONE = ["one by one", false] as const;

describe.each([["in groups", true] as const, ...(isPostgres ? [] : [ONE_BY_ONE])])(
  "writes that wait at the same time, committed %s",
  (_, grouping) => {
    beforeEach(async () => {
      await store.close();
      ({ dataDir, store } = await openWithOrganizations(grouping));
    });

    test("are all there when they answer, in the order in which they were asked", async () => {
      const names = Array.from({ length: 300 }, (__, index) => `fact ${String(index).padStart(3, "0")}`);
      const answers = await Promise.all(
        names.map(async (name) => {
          const answer = await store.write(ACTOR, "test", (tx) => put(tx, name));
          expect(await factsIn(store)).toContain(name);
          return answer;
        }),
      );
      expect(answers).toEqual(names);
      await expectWholeRecord(store, { [ONE]: names, [TWO]: [] });
      // Not through this store: what another process would find.
      const other = openAt(dataDir);
      expect(await factsIn(other)).toEqual(names);
      expect(await auditOf(other, ONE)).toHaveLength(names.length + 1);
      await other.close();
    });

    test("become durable together or each for itself, as the store was opened", async () => {
      const first = store.write(ACTOR, "test", (tx) => put(tx, "first"));
      const seen = await store.write(ACTOR, "test", () => factsIn(store));
      expect(seen).toEqual(grouping ? [] : ["first"]);
      await first;
    });

    test("of which some fail leave nothing of those, and all of the others", async () => {
      const outcomes = await Promise.allSettled(
        Array.from({ length: 200 }, (__, index) =>
          store.write(ACTOR, "test", async (tx) => {
            const name = `fact ${String(index).padStart(3, "0")}`;
            await put(tx, name, index % 2 === 0 ? ONE : TWO);
            if (index % 3 === 0) throw new Error(`no ${index}`);
            if (index % 7 === 0)
              await builderOf(tx.db).insertInto("fact").values({ name, value: "twice" }).execute();
            return name;
          }),
        ),
      );
      const kept = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      expect(kept).toHaveLength(200 - 67 - 19);
      expect(outcomes[3]).toMatchObject({ status: "rejected", reason: { message: "no 3" } });
      expect(outcomes[7]).toMatchObject({
        status: "rejected",
        reason: { code: isPostgres ? "23505" : "SQLITE_CONSTRAINT_PRIMARYKEY" },
      });
      expect(await factsIn(store)).toEqual(kept);
      const of = (rest: number) => kept.filter((name) => Number(name.slice(-3)) % 2 === rest);
      await expectWholeRecord(store, { [ONE]: of(0), [TWO]: of(1) });
    });
  },
);

describe("a write", () => {
  test("records each change with who made it, by which operation, when, and what changed", async () => {
    await store.write(ACTOR, "service.v1.ProjectService/UpdateProject", async (tx) => {
      expect(tx.now).toBe(NOW_MS);
      tx.record({
        organizationId: ONE,
        type: "project",
        id: "p",
        kind: "updated",
        before: JSON.stringify({ name: "a", same: 1 }),
        after: JSON.stringify({ name: "b", same: 1 }),
        reason: "because",
      });
      tx.record({ ...change(TWO, "r"), type: "runner", kind: "deleted", before: "{}" });
    });
    expect((await auditOf(store, ONE))[1]).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      organization_id: ONE,
      sequence: 2,
      at: NOW_MS,
      actor_id: ACTOR.id,
      actor_principal: 2,
      operation: "service.v1.ProjectService/UpdateProject",
      subject_type: "project",
      subject_id: "p",
      reason: "because",
      diff: '{"name":["a","b"]}',
      previous_hash: null,
      hash: expect.anything(),
      key_id: AUDIT.keyId,
      packed_diff: null,
    });
    expect((await eventsOf(store, ONE))[1]).toEqual({
      organization_id: ONE,
      sequence: 2,
      at: NOW_MS,
      kind: "updated",
      resource_type: "project",
      resource_id: "p",
      creator_id: null,
      owner_id: null,
      environment_id: null,
    });
    expect((await auditOf(store, TWO))[1]).toMatchObject({ sequence: 2, subject_type: "runner", reason: "" });
  });

  test("that changes nothing leaves no record", async () => {
    expect(await store.write(SYSTEM, "test", async () => "answer")).toBe("answer");
    await expectWholeRecord(store, { [ONE]: [], [TWO]: [] });
  });

  test("whose change names no organization fails, and leaves nothing", async () => {
    const failing = store.write(SYSTEM, "test", (tx) => put(tx, "fact", "none"));
    await expect(failing).rejects.toThrow("an organization that does not exist: none");
    expect(await factsIn(store)).toEqual([]);
  });

  test("sees what it has written, and nobody else does until it answers", async () => {
    await store.write(SYSTEM, "test", async (tx) => {
      await put(tx, "fact");
      expect(await builderOf(tx.db).selectFrom("fact").select("name").execute()).toEqual([{ name: "fact" }]);
      expect(await factsIn(store)).toEqual([]);
    });
    expect(await factsIn(store)).toEqual(["fact"]);
  });

  test("may run several queries at once", async () => {
    await store.write(SYSTEM, "test", (tx) => Promise.all(["a", "b", "c"].map((name) => put(tx, name))));
    expect(await factsIn(store)).toEqual(["a", "b", "c"]);
    await expectWholeRecord(store, { [ONE]: ["a", "b", "c"] });
  });

  test("that catches the failure of a part goes on with the rest", async () => {
    await store.write(SYSTEM, "test", async (tx) => {
      await put(tx, "a");
      const again = () => builderOf(tx.db).insertInto("fact").values({ name: "a", value: "again" }).execute();
      await tx.attempt(again).catch(() => undefined);
      await put(tx, "b");
    });
    expect(await factsIn(store)).toEqual(["a", "b"]);
  });

  test("that catches the failure of a part keeps nothing of the part, and those before it lose nothing", async () => {
    const outcomes = await Promise.allSettled([
      store.write(SYSTEM, "test", (tx) => put(tx, "before")),
      store.write(SYSTEM, "test", async (tx) => {
        await put(tx, "early");
        const part = async () => {
          await put(tx, "part");
          throw new Error("the part fails late");
        };
        await tx.attempt(part).catch(() => undefined);
        await put(tx, "late");
      }),
      store.write(SYSTEM, "test", (tx) => put(tx, "behind")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect(await factsIn(store)).toEqual(["before", "behind", "early", "late"]);
    await expectWholeRecord(store, { [ONE]: ["before", "early", "late", "behind"], [TWO]: [] });
  });

  test("that catches the failure of a query without a part loses nothing unsaid", async () => {
    const write = store.write(SYSTEM, "test", async (tx) => {
      await put(tx, "a");
      const again = builderOf(tx.db).insertInto("fact").values({ name: "a", value: "again" });
      await again.execute().catch(() => undefined);
      await put(tx, "b");
    });
    // PostgreSQL takes no statement after one that failed.
    if (isPostgres) await expect(write).rejects.toThrow("current transaction is aborted");
    else await write;
    expect(await factsIn(store)).toEqual(isPostgres ? [] : ["a", "b"]);
  });

  for (const [name, wait] of [
    ["a timer", (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 1))],
    ["the next turn of the event loop", () => new Promise((resolve) => setImmediate(resolve))],
    // Nobody listens there: what counts is that the answer comes from outside.
    ["the network", () => new Promise((resolve) => connect(9, "127.0.0.1").once("error", resolve))],
  ] as const)
    testOnSqlite("its one writer lets a write wait for nothing else")(
      `that awaits ${name} is rolled back and says why; the others of its commit stay`,
      async () => {
        const outcomes = await Promise.allSettled([
          store.write(SYSTEM, "test", (tx) => put(tx, "before")),
          store.write(SYSTEM, "test", async (tx) => {
            await put(tx, "early");
            await untilLaterTurn(wait);
            await put(tx, "late");
          }),
          store.write(SYSTEM, "test", (tx) => put(tx, "behind")),
        ]);
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
        expect(outcomes[1]).toMatchObject({
          reason: { message: expect.stringContaining("awaited something other") },
        });
        expect(await factsIn(store)).toEqual(["before", "behind"]);
        await expectWholeRecord(store, { [ONE]: ["before", "behind"], [TWO]: [] });
      },
    );

  test("does not begin when its signal is aborted before its turn", async () => {
    const controller = new AbortController();
    let began = false;
    const first = store.write(SYSTEM, "test", async (tx) => {
      controller.abort(new Error("the deadline passed"));
      await put(tx, "first");
    });
    const aborted = store.write(
      SYSTEM,
      "test",
      async () => {
        began = true;
      },
      { signal: controller.signal },
    );
    await expect(aborted).rejects.toThrow("the deadline passed");
    await first;
    expect(began).toBe(false);
    expect(await factsIn(store)).toEqual(["first"]);
  });

  test("goes on to its end when its signal is aborted after it began", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const body = async (tx: WriteTransaction) => {
      controller.abort();
      return put(tx, "fact");
    };
    expect(await store.write(SYSTEM, "test", body, { signal })).toBe("fact");
    expect(await factsIn(store)).toEqual(["fact"]);
  });
});

/**
 * Waits until the event loop has turned: on a machine that stalls, a timer is due by the end
 * of the turn that set it, and the store need not notice.
 */
async function untilLaterTurn(wait: () => Promise<unknown>): Promise<void> {
  const { loopCount } = performance.nodeTiming.uvMetricsInfo;
  do await wait();
  while (performance.nodeTiming.uvMetricsInfo.loopCount === loopCount);
}
