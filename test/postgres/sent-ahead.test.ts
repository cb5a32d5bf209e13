import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { Batch } from "../../src/store/postgres/batch.ts";
import { prepared } from "../../src/store/prepared.ts";
import { type Reader, type Store, SYSTEM, type WriteTransaction, within } from "../../src/store/store.ts";
import {
  changeOf,
  holdLocks,
  makeOrganization,
  sequencesOf,
  type TestScope,
  untilWaiting,
} from "../harness/locked-organizations.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";

/*
 * A prepared change is sent and not awaited: what the engine says to it arrives with the answer to a later statement of
 * the same write.
 */

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  store = await openProcess(url, { groupMs: 60_000 });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

const insertFact = prepared<{ name: string; value: string }, unknown>((db, { name, value }) =>
  db.insertInto("fact").values({ name, value }),
);

const selectValue = prepared<{ name: string }, { value: string }>((db, { name }) =>
  db.selectFrom("fact").select("value").where("name", "=", name),
);

const factOf = async (db: Reader, name: string) => (await selectValue(db, { name }))[0]?.value;

const write = <T>(scope: TestScope, run: (tx: WriteTransaction) => Promise<T>) =>
  store.write(SYSTEM, "test", run, within(scope));

/** Starts writes while the lock of their organization is held elsewhere, so that they share a commit. */
async function together<T>(scope: TestScope, start: () => Promise<T>[]): Promise<PromiseSettledResult<T>[]> {
  const held = await holdLocks(url, [scope.organizationId]);
  const writes = start();
  await untilWaiting(url, 1);
  await held.release();
  return Promise.allSettled(writes);
}

describe("a change that the engine refuses", () => {
  test("leaves what it kept from being prepared to a later write of the connection", async () => {
    const scope = await makeOrganization(store);
    const selectNever = prepared<{ name: string }, { name: string }>((db, { name }) =>
      db.selectFrom("fact").select("name").where("name", "=", name).where("value", "!=", ""),
    );
    await write(scope, ({ db }) => insertFact(db, { name: "prepared", value: "first" }));
    const refused = write(scope, async ({ db }) => {
      await insertFact(db, { name: "prepared", value: "second" });
      await selectNever(db, { name: "prepared" });
    });
    await expect(refused).rejects.toThrow("duplicate key");
    const found = await write(scope, ({ db }) => selectNever(db, { name: "prepared" }));
    expect(found).toEqual([{ name: "prepared" }]);
  });

  test("fails its write with the engine's error, though nothing came after it", async () => {
    const scope = await makeOrganization(store);
    await write(scope, ({ db }) => insertFact(db, { name: "taken", value: "first" }));
    const again = write(scope, async ({ db, ...tx }) => {
      await insertFact(db, { name: "second_name", value: "lost" });
      await insertFact(db, { name: "taken", value: "second" });
      tx.record(changeOf(scope));
      return "done";
    });
    await expect(again).rejects.toMatchObject({ code: "23505" });
    expect(await factOf(store.reader, "taken")).toBe("first");
    expect(await factOf(store.reader, "second_name")).toBeUndefined();
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([]);
  });

  test("is the error of what the write asks next", async () => {
    const scope = await makeOrganization(store);
    const asking = write(scope, async ({ db }) => {
      await insertFact(db, { name: "asked", value: "first" });
      await insertFact(db, { name: "asked", value: "second" });
      await expect(factOf(db, "asked")).rejects.toMatchObject({ code: "23505" });
    });
    await expect(asking).rejects.toMatchObject({ code: "23505" });
  });

  test("fails none of the writes that share the commit", async () => {
    const scope = await makeOrganization(store);
    const settled = await together(scope, () =>
      ["one", "one", "two"].map((name) =>
        write(scope, async (tx) => {
          await insertFact(tx.db, { name, value: name });
          tx.record(changeOf(scope));
        }),
      ),
    );
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await factOf(store.reader, "two")).toBe("two");
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1, 2]);
  });

  test("fails a part of a write, which goes on without it", async () => {
    const scope = await makeOrganization(store);
    await write(scope, async (tx) => {
      await insertFact(tx.db, { name: "part", value: "whole" });
      const part = tx.attempt(() => insertFact(tx.db, { name: "part", value: "part" }));
      await expect(part).rejects.toMatchObject({ code: "23505" });
      await insertFact(tx.db, { name: "after", value: "part" });
    });
    expect(await factOf(store.reader, "part")).toBe("whole");
    expect(await factOf(store.reader, "after")).toBe("part");
  });

  test("fails every write of the commit where it is a record of them", async () => {
    const scope = await makeOrganization(store);
    await onCluster(url, "alter table event add constraint none check (resource_id <> 'refused') not valid");
    const settled = await together(scope, () =>
      ["fine", "refused"].map((id) =>
        write(scope, async (tx) => {
          await insertFact(tx.db, { name: `record of ${id}`, value: id });
          tx.record({ ...changeOf(scope), id });
        }),
      ),
    );
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await factOf(store.reader, "record of fine")).toBeUndefined();
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([]);
    // The connection is of use again.
    await write(scope, async (tx) => tx.record(changeOf(scope)));
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1]);
  });
});

describe("of the writes that share a commit, one that fails", () => {
  const FAILURES = {
    "before it changes anything": { changes: false, runs: 1 },
    // The others begin again, each with a savepoint.
    "after it has changed something": { changes: true, runs: 2 },
  };

  test.each(Object.keys(FAILURES) as (keyof typeof FAILURES)[])(
    "%s leaves the others as they are",
    async (when) => {
      const { changes, runs } = FAILURES[when];
      const scope = await makeOrganization(store);
      const [ran, kept] = [new Map<string, number>(), `kept ${when}`];
      const run = (name: string, fails: boolean) =>
        write(scope, async (tx) => {
          ran.set(name, (ran.get(name) ?? 0) + 1);
          if (changes || !fails) {
            await insertFact(tx.db, { name: `${kept} ${name}`, value: name });
            tx.record(changeOf(scope));
          }
          if (fails) throw new Error("refused");
          return factOf(tx.db, `${kept} ${name}`);
        });
      const settled = await together(scope, () => [run("one", false), run("two", true), run("three", false)]);
      expect(settled).toMatchObject([
        { status: "fulfilled", value: "one" },
        { status: "rejected", reason: { message: "refused" } },
        { status: "fulfilled", value: "three" },
      ]);
      expect([...ran]).toEqual([
        ["one", runs],
        ["two", runs],
        ["three", 1],
      ]);
      const { rows } = await onCluster(
        url,
        `select value from fact where name like '${kept}%' order by name`,
      );
      expect(rows).toEqual([{ value: "one" }, { value: "three" }]);
      expect(await sequencesOf(store, "audit_log", scope)).toEqual([1, 2]);
    },
  );

  test("is not run again where it is the first, and the others follow in the next commit", async () => {
    const scope = await makeOrganization(store);
    let runs = 0;
    const settled = await together(scope, () => [
      write(scope, async (tx) => {
        runs += 1;
        await insertFact(tx.db, { name: "first", value: "lost" });
        tx.record(changeOf(scope));
        throw new Error("refused");
      }),
      write(scope, async (tx) => tx.record(changeOf(scope))),
    ]);
    expect(settled).toMatchObject([
      { status: "rejected", reason: { message: "refused" } },
      { status: "fulfilled" },
    ]);
    expect(runs).toBe(1);
    expect(await factOf(store.reader, "first")).toBeUndefined();
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1]);
  });

  test("in a part, which changes something first, leaves the rest of its write and the others", async () => {
    const scope = await makeOrganization(store);
    const partly = (name: string, part: () => Promise<void>) =>
      write(scope, async (tx) => {
        await insertFact(tx.db, { name: `${name} before`, value: name });
        const attempt = tx.attempt(async () => {
          await insertFact(tx.db, { name: `${name} part`, value: name });
          tx.record(changeOf(scope));
          await part();
        });
        const outcome = await attempt.then(
          () => "done",
          (error) => {
            // What the store itself says ends the write.
            if (error.name === "StoreUnavailable") throw error;
            return error.message as string;
          },
        );
        await insertFact(tx.db, { name: `${name} after`, value: name });
        return outcome;
      });
    const settled = await together(scope, () => [
      partly("whole", async () => undefined),
      partly("halved", async () => {
        throw new Error("refused");
      }),
    ]);
    expect(settled.map((each) => each.status === "fulfilled" && each.value)).toEqual(["done", "refused"]);
    const { rows } = await onCluster(
      url,
      "select name from fact where name like 'whole %' or name like 'halved %' order by name",
    );
    expect(rows.map(({ name }) => name)).toEqual([
      "halved after",
      "halved before",
      "whole after",
      "whole before",
      "whole part",
    ]);
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1]);
  });
});

test("many changes in a row all arrive", async () => {
  const scope = await makeOrganization(store);
  const names = Array.from({ length: 1_000 }, (_, index) => `many ${index}`);
  const last = await write(scope, async ({ db }) => {
    for (const name of names) await insertFact(db, { name, value: name });
    return factOf(db, "many 999");
  });
  expect(last).toBe("many 999");
  const { rows } = await onCluster(url, "select count(*)::int as count from fact where name like 'many %'");
  expect(rows).toEqual([{ count: 1_000 }]);
});

describe("the changes of a write", () => {
  const submit = jest.spyOn(Batch.prototype, "submit");
  afterAll(() => submit.mockRestore());

  /** A write that reads, changes, and leaves a record. */
  const readAndChange = (scope: TestScope, name: string) =>
    write(scope, async (tx) => {
      const before = await factOf(tx.db, name);
      await insertFact(tx.db, { name, value: name });
      tx.record(changeOf(scope));
      return before;
    });

  test("go out with what the next one of the commit reads, and those of the last one at once", async () => {
    const scope = await makeOrganization(store);
    const held = await holdLocks(url, [scope.organizationId]);
    const writes = ["first", "next", "last"].map((name) => readAndChange(scope, `in a row: ${name}`));
    await untilWaiting(url, 1);
    const before = submit.mock.calls.length;
    await held.release();
    expect(await Promise.all(writes)).toEqual([undefined, undefined, undefined]);
    // Three reads, of which two take changes along; the changes of the last one; the records with the commit.
    expect(submit.mock.calls.length - before).toBe(5);
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1, 2, 3]);
  });

  test("go out with its records while another transaction is under way", async () => {
    const [scope, neighbour] = [await makeOrganization(store), await makeOrganization(store)];
    const pieces = async (name: string) => {
      const before = submit.mock.calls.length;
      await readAndChange(scope, name);
      return submit.mock.calls.length - before;
    };
    // The locks, the read, the changes, and the records with the commit.
    expect(await pieces("alone")).toBe(4);
    const held = await holdLocks(url, [neighbour.organizationId]);
    const waiting = readAndChange(neighbour, "waiting");
    await untilWaiting(url, 1);
    expect(await pieces("next to another")).toBe(3);
    await held.release();
    await waiting;
    expect(await pieces("alone afterwards")).toBe(4);
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1, 2, 3]);
  });

  test("that the engine refuses fail neither the write whose reads they go with, nor the one before", async () => {
    const scope = await makeOrganization(store);
    const settled = await together(scope, () =>
      ["kept", "kept", "read"].map((name) =>
        write(scope, async (tx) => {
          const before = await factOf(tx.db, "refused: kept");
          // Nothing is asked after the change: what the engine says to it comes with the next write's answer.
          await insertFact(tx.db, { name: `refused: ${name}`, value: name });
          tx.record(changeOf(scope));
          return before;
        }),
      ),
    );
    expect(settled).toMatchObject([
      { status: "fulfilled", value: undefined },
      { status: "rejected", reason: { code: "23505" } },
      { status: "fulfilled", value: "kept" },
    ]);
    expect(await sequencesOf(store, "audit_log", scope)).toEqual([1, 2]);
  });
});
