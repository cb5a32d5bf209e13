import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { asLeader } from "../../src/jobs/job-writes.ts";
import { Listeners } from "../../src/store/listeners.ts";
import { Session } from "../../src/store/postgres/session.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Store, SYSTEM, within } from "../../src/store/store.ts";
import { startLinks } from "../harness/database-link.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { leaders } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

const SCOPE = { organizationId: "organization" };

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await endNodes();
  await cluster?.stop();
});

describe("of two servers, the one that leads the jobs", () => {
  let url: string;
  let first: Store;
  let second: Store;
  beforeEach(async () => {
    url = await emptyDatabase(cluster);
    first = await openProcess(url, { presence: "server" });
    await until(first.leads, (leads) => leads);
    second = await openProcess(url, { presence: "server" });
    await first.write(SYSTEM, "test", async ({ db, now }) => {
      const row = { id: SCOPE.organizationId, name: "before", created_at: now, updated_at: now };
      await builderOf(db)
        .insertInto("organization")
        .values({
          ...row,
          sequence: 0,
          enterprise: 0,
          chain_hash: null,
          pruned_sequence: 0,
          invite_domains: "[]",
        })
        .execute();
    });
  });
  afterEach(() => Promise.all([first.close(), second.close()]));

  const name = async () => {
    const { rows } = await onCluster(url, "select name from organization");
    return rows[0].name as string;
  };
  const write = (store: Store, then: () => Promise<unknown> = async () => undefined) =>
    asLeader(store).write(
      SYSTEM,
      "test",
      async ({ db }) => {
        await builderOf(db).updateTable("organization").set({ name: "after" }).execute();
        await then();
      },
      within(SCOPE),
    );
  /** Ends the session that holds the lead, as the engine does when its process is suspended. */
  const endLead = async () => {
    const [leader] = await leaders(url);
    await onCluster(url, `select pg_terminate_backend(${leader})`);
    return until(
      () => leaders(url),
      (found) => found.length === 1 && found[0] !== leader,
    );
  };
  /** Ends the session of the first store and lets the second lead, although the first asks again at once. */
  const moveLead = async () => {
    while (!second.leads()) {
      await endLead();
      await until(
        () => first.leads() || second.leads(),
        (led) => led,
      );
    }
  };

  test("writes what jobs write, and the other nothing", async () => {
    await expect(write(second)).rejects.toThrow("another server runs the jobs");
    await expect(
      asLeader(second).touchAll([{ table: "runner", id: "r", values: { seen_at: 1 } }]),
    ).rejects.toThrow("another server runs the jobs");
    expect(await name()).toBe("before");
    await write(first);
    expect(await name()).toBe("after");
  });

  test("writes nothing more once the other leads", async () => {
    await moveLead();
    await expect(write(first)).rejects.toThrow("another server runs the jobs");
    expect(await name()).toBe("before");
    await write(second);
    expect(await name()).toBe("after");
  });

  test("ends a write that it has begun before another leads", async () => {
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = write(first, () => {
      begun.resolve();
      return released.promise;
    });
    await begun.promise;
    await endLead();
    // The server that has the lock now has asked whether writes of jobs go on.
    await until(
      async () => (await onCluster(url, ASKED)).rowCount,
      (count) => count === 1,
    );
    expect([first.leads(), second.leads()]).toEqual([false, false]);
    released.resolve();
    await writing;
    expect(await name()).toBe("after");
    await until(
      () => first.leads() || second.leads(),
      (led) => led,
    );
  });
});

/** The session that holds the lead, once it has looked and so has asked before whether writes of jobs go on. */
const ASKED = `select from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory' and objid = 4
  and objsubid = 2 and granted and database = (select oid from pg_database where datname = current_database())
  and query like '%pg_current_snapshot%'`;

describe("a session that the engine does not answer", () => {
  test("wakes the listeners every second, says so, and goes on when it is answered", async () => {
    const url = await emptyDatabase(cluster);
    // A server joins the feature level that the tables name.
    await (await openProcess(url)).close();
    const [link] = await startLinks(url, 1);
    if (!link) throw new Error("there is no link");
    const listeners = new Listeners();
    const session = new Session({ url: link.url, presence: "server", listeners });
    await session.open();
    await until(
      () => session.leader,
      (leader) => leader !== undefined,
    );
    await link.enter("silent");
    let woken = 0;
    listeners.add(() => {
      woken += 1;
    });
    await until(
      () => woken,
      (count) => count >= 3,
    );
    await until(
      () => session.problem,
      (problem) => problem === "the database cannot be reached: it does not answer",
    );
    expect(session.leader).toBeUndefined();
    // A process that others cannot see does not lead either.
    await until(
      () => leaders(url),
      (found) => found.length === 0,
    );
    await link.enter("open");
    // It leads before its look has ended, which is what solves the problem.
    await until(
      () => session.leader !== undefined && session.problem === undefined,
      (isWell) => isWell,
    );
    await session.close();
  });
});
