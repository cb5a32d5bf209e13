import { readdirSync } from "node:fs";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { type Store, StoreUnavailable, SYSTEM, within } from "../../src/store/store.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { type RawData, withRawData } from "../harness/raw-data.ts";
import { stopAll } from "../harness/server.ts";
import {
  change,
  expectWholeRecord,
  factsIn,
  ONE,
  openAt,
  openWithOrganizations,
  put,
  TWO,
} from "./made-up-changes.ts";

let dataDir: string;
let store: Store;

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

const isPostgres = postgresUrl() !== undefined;

/** What the engine says when it has given up a transaction. */
const GIVEN_UP = isPostgres ? "terminating connection due to administrator command" : "the disk is full";

/** Returns the statement after which the engine gives up each transaction that inserts the fact "full". */
const givesUp = ({ isPostgres }: RawData) =>
  isPostgres
    ? `create function give_up() returns trigger language plpgsql as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
      create trigger gives_up before insert on fact for each row when (new.name = 'full') execute function give_up()`
    : `create trigger gives_up before insert on fact when new.name = 'full'
      begin select raise(rollback, 'the disk is full'); end`;

describe("a write that the database does not take", () => {
  test("fails as unavailable, with all of its commit, when the engine gives up the transaction", async () => {
    await withRawData(dataDir, (raw) => raw.run(givesUp(raw)));
    const outcomes = await Promise.allSettled(
      ["before", "full", "behind"].map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    for (const outcome of outcomes.slice(0, 2)) {
      const reason = outcome.status === "rejected" && outcome.reason;
      expect(reason).toBeInstanceOf(StoreUnavailable);
      expect(reason).toMatchObject({ cause: { message: GIVEN_UP } });
    }
    expect(await factsIn(store)).toEqual(["behind"]);
    await expectWholeRecord(store, { [ONE]: ["behind"], [TWO]: [] });
  });

  test("fails as unavailable when a part of it has lost the transaction", async () => {
    await withRawData(dataDir, (raw) => raw.run(givesUp(raw)));
    let thrown: unknown;
    const write = store.write(SYSTEM, "test", async (tx) => {
      await tx
        .attempt(() => put(tx, "full"))
        .catch((error: unknown) => {
          thrown = error;
          throw error;
        });
    });
    await expect(write).rejects.toThrow(StoreUnavailable);
    expect(thrown).toBeInstanceOf(StoreUnavailable);
    await store.write(SYSTEM, "test", (tx) => put(tx, "behind"));
    expect(await factsIn(store)).toEqual(["behind"]);
  });

  test("fails with all of its commit when its records are refused, and then nobody fails with it a second time", async () => {
    // So that the next audit row takes a number that is taken.
    await withRawData(dataDir, (raw) => raw.run(`update organization set sequence = 0 where id = '${ONE}'`));
    const both = () =>
      Promise.allSettled(
        [ONE, TWO, ONE, TWO].map((id, index) =>
          store.write(
            SYSTEM,
            "test",
            async (tx) => tx.record(change(id, `${index}`)),
            within({ organizationId: id }),
          ),
        ),
      );
    const statuses = (results: PromiseSettledResult<void>[]) =>
      results.map(({ status }) => status === "fulfilled");
    const first = await both();
    expect(first[0]).toMatchObject({ reason: expect.any(StoreUnavailable) });
    // On PostgreSQL organizations share no commit.
    expect(statuses(first)).toEqual([false, isPostgres, false, isPostgres]);
    expect(statuses(await both())).toEqual([false, true, false, true]);
    expect(statuses(await both())).toEqual([false, true, false, true]);
    await expectWholeRecord(store, {
      [TWO]: Array(isPostgres ? 3 : 2)
        .fill(["1", "3"])
        .flat(),
    });
  });

  test("is refused as unavailable when ten thousand wait already", async () => {
    const waiting = Array.from({ length: 10_000 }, () => store.write(SYSTEM, "test", async () => undefined));
    await expect(store.write(SYSTEM, "test", (tx) => put(tx, "too many"))).rejects.toThrow(StoreUnavailable);
    await Promise.all(waiting);
    await store.write(SYSTEM, "test", (tx) => put(tx, "later"));
    expect(await factsIn(store)).toEqual(["later"]);
  });
});

describe("while another connection holds the write lock", () => {
  let release: () => Promise<void>;
  beforeEach(async () => {
    const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = withRawData(dataDir, async (raw) => {
      await raw.beginLocked();
      await raw.run("insert into fact (name, value) values ('theirs', '')");
      held.resolve();
      await released.promise;
      await raw.run("commit");
    });
    release = () => {
      released.resolve();
      return holding;
    };
    await held.promise;
  });

  test("reads go on, writes wait for it and are then done", async () => {
    const writing = ["a", "b"].map((name) =>
      store.write(SYSTEM, "test", async (tx) => {
        const before = await builderOf(tx.db).selectFrom("fact").select("name").orderBy("name").execute();
        await put(tx, name);
        return before.map(({ name }) => name);
      }),
    );
    // They have asked for it by the third turn of the event loop, which goes on.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(await factsIn(store)).toEqual([]);
    await release();
    expect(await Promise.all(writing)).toEqual([["theirs"], ["a", "theirs"]]);
    expect(await factsIn(store)).toEqual(["a", "b", "theirs"]);
    await expectWholeRecord(store, { [ONE]: ["a", "b"] });
  });

  test("for too long, all that have waited for it fail as unavailable, and none that come later", async () => {
    const writes = ["a", "b"].map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name)));
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    const outcomes = await Promise.allSettled(writes);
    clearInterval(ticking);
    for (const outcome of outcomes) {
      expect(outcome.status === "rejected" && outcome.reason).toBeInstanceOf(StoreUnavailable);
      const code = isPostgres ? "55P03" : "SQLITE_BUSY";
      expect(outcome).toMatchObject({ reason: { problem: undefined, cause: { code } } });
    }
    expect(ticks).toBeGreaterThan(50);
    await release();
    expect(await store.write(SYSTEM, "test", (tx) => put(tx, "later"))).toBe("later");
    await expectWholeRecord(store, { [ONE]: ["later"] });
  });
});

describe("closing the store", () => {
  test("lets the writes under way finish, refuses later ones, and leaves at most one file", async () => {
    const names = Array.from({ length: 50 }, (_, index) => `fact ${index}`);
    const writes = names.map((name) => store.write(SYSTEM, "test", (tx) => put(tx, name)));
    const closed = store.close();
    let began = false;
    const late = store.write(SYSTEM, "test", async () => {
      began = true;
    });
    await expect(late).rejects.toThrow(StoreUnavailable);
    await expect(store.note("token", "t", { last_used_at: 1 })).rejects.toThrow(StoreUnavailable);
    expect(await Promise.all(writes)).toEqual(names);
    await closed;
    await expect(store.write(SYSTEM, "test", async () => undefined)).rejects.toThrow(StoreUnavailable);
    expect(began).toBe(false);
    if (!isPostgres) expect(readdirSync(dataDir)).toEqual([DATABASE_FILE]);
    store = openAt(dataDir);
    expect((await factsIn(store)).sort()).toEqual(names.sort());
  });
});
