import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { makeAgentDefault, registerAgent, unregisterAgent } from "../../src/services/agent/agent-registry.ts";
import {
  holdPresence,
  lockForMigration,
  lockForWrite,
  tryBecomeLeader,
} from "../../src/store/postgres/locks.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Lock, type Reader, type Store, SYSTEM, within } from "../../src/store/store.ts";
import {
  changeOf,
  holdLocks,
  makeOrganization,
  nameOf,
  rename,
  type TestScope,
  untilWaiting,
} from "../harness/locked-organizations.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";

let cluster: PostgresCluster;
let url: string;
let one: Store;
let other: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  one = await openProcess(url);
  other = await openProcess(url);
});
afterAll(async () => {
  await Promise.all([one?.close(), other?.close()]);
  await cluster?.stop();
});

test("no lock is that of another purpose, whatever the ids of organizations are", async () => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const held = async (take: () => Promise<unknown>) => {
    await client.query("begin");
    await take();
    const { rows } = await client.query<{ classid: string; objid: string; objsubid: number }>(
      "select classid::text, objid::text, objsubid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    );
    await client.query("rollback");
    await client.query("select pg_advisory_unlock_all()");
    return rows.map(({ classid, objid, objsubid }) => `${objsubid} ${classid} ${objid}`);
  };
  const installation = await held(() => lockForWrite(client, "installation"));
  const exceptInstallation = async (locks: readonly Lock[]) =>
    (await held(() => lockForWrite(client, locks))).filter((lock) => !installation.includes(lock));
  const ofPurposes = [
    ...installation,
    ...(await exceptInstallation([null])),
    ...(await held(() => lockForMigration(client))),
    ...(await held(() => holdPresence(client, "alone"))),
    ...(await held(() => tryBecomeLeader(client))),
  ];
  const ofOrganizations = await exceptInstallation(["installation", "common", "shared", "1"]);
  await client.end();
  // The server that leads the jobs takes two.
  expect(new Set([...ofPurposes, ...ofOrganizations]).size).toBe(6 + 4);
  // The engine keeps apart the locks of two numbers and those of one.
  expect(ofPurposes.every((lock) => lock.startsWith("2 "))).toBe(true);
  expect(ofOrganizations.every((lock) => lock.startsWith("1 "))).toBe(true);
});

test("a write sees what was changed while it waited, also where the database isolates transactions more strictly", async () => {
  const strict = await emptyDatabase(cluster);
  const name = new URL(strict).pathname.slice(1);
  await onCluster(strict, `alter database ${name} set default_transaction_isolation = 'serializable'`);
  const store = await openProcess(strict);
  const scope = await makeOrganization(store);
  const held = await holdLocks(strict, [scope.organizationId]);
  const seen = store.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope));
  await untilWaiting(strict, 1);
  await held.client.query("update organization set name = 'changed' where id = $1", [scope.organizationId]);
  await held.release();
  expect(await seen).toBe("changed");
  await store.close();
});

describe("a write that finds its locks by reading", () => {
  /** The organizations that a text in the row of the first names: what the locks depend on. */
  const named =
    (first: TestScope) =>
    async (db: Reader): Promise<Lock[]> => [first.organizationId, ...(await nameOf(db, first)).split(",")];

  test("starts over when they have grown while it waited, and then holds all of them", async () => {
    const [first, second, third] = await Promise.all([1, 2, 3].map(() => makeOrganization(one)));
    if (!first || !second || !third) throw new Error("an organization is missing");
    await one.write(SYSTEM, "test", (tx) => rename(tx, first, second.organizationId), within(first));
    const held = await holdLocks(url, [first.organizationId]);
    let begun = 0;
    const written = other.write(
      SYSTEM,
      "test",
      async (tx) => {
        begun += 1;
        for (const scope of [first, second, third]) tx.record(changeOf(scope));
      },
      { locks: named(first) },
    );
    await untilWaiting(url, 1);
    await held.client.query("update organization set name = $2 where id = $1", [
      first.organizationId,
      `${second.organizationId},${third.organizationId}`,
    ]);
    // It now waits for the third organization, whose lock it did not know of.
    const alsoHeld = await holdLocks(url, [third.organizationId]);
    await held.release();
    await untilWaiting(url, 1);
    expect(begun).toBe(0);
    await alsoHeld.release();
    await written;
    expect(begun).toBe(1);
  });

  test("is unavailable when they have grown five times", async () => {
    const first = await makeOrganization(one);
    let read = 0;
    const written = one.write(SYSTEM, "test", async () => undefined, {
      locks: async () => [first.organizationId, `another-${++read}`],
    });
    await expect(written).rejects.toMatchObject({ name: "StoreUnavailable" });
    // Once without locks, and once under those of each attempt.
    expect(read).toBe(6);
  });

  test("starts over only when they have grown, not when there are fewer", async () => {
    const first = await makeOrganization(one);
    let read = 0;
    const locks = async () => (++read === 1 ? [first.organizationId, "gone"] : [first.organizationId]);
    expect(await one.write(SYSTEM, "test", async () => "written", { locks })).toBe("written");
    expect(read).toBe(2);
  });
});

describe("a write fails, and leaves nothing, that changes without a lock", () => {
  const refused = async (change: (db: Reader, neighbour: TestScope) => Promise<unknown>) => {
    const [scope, neighbour] = [await makeOrganization(one), await makeOrganization(one)];
    const written = one.write(SYSTEM, "test", ({ db }) => change(db, neighbour), within(scope));
    await expect(written).rejects.toThrow("which it has not locked");
    expect(await nameOf(one.reader, neighbour)).toBe(neighbour.organizationId);
  };
  const policies = ({ organizationId }: TestScope) => ({
    organization_id: organizationId,
    body: "{}",
    origins: "{}",
  });

  test("a row of an organization that names it, though nothing is recorded", async () => {
    await refused((db, neighbour) => rename({ db }, neighbour, "stolen"));
    await refused((db, neighbour) =>
      builderOf(db).insertInto("organization_policies").values(policies(neighbour)).execute(),
    );
    await refused((db, neighbour) =>
      builderOf(db)
        .updateTable("project")
        .set({ popularity: 1 })
        .where("id", "=", "p")
        .where("project.organization_id", "=", neighbour.organizationId)
        .execute(),
    );
    await refused((db, neighbour) =>
      builderOf(db).deleteFrom("token").where("organization_id", "=", neighbour.organizationId).execute(),
    );
  });

  test("the second of several rows", async () => {
    const [scope, neighbour] = [await makeOrganization(one), await makeOrganization(one)];
    const rows = [scope, neighbour].map(policies);
    const written = one.write(
      SYSTEM,
      "test",
      ({ db }) => builderOf(db).insertInto("organization_policies").values(rows).execute(),
      within(scope),
    );
    await expect(written).rejects.toThrow("which it has not locked");
  });

  test("what belongs to no organization", async () => {
    const scope = await makeOrganization(one);
    const change = { ...changeOf(scope), organizationId: null };
    const record = (locks: readonly Lock[]) =>
      one.write(SYSTEM, "test", async (tx) => tx.record(change), { locks });
    await expect(record([scope.organizationId])).rejects.toThrow(
      "of the installation, which it has not locked",
    );
    await record([scope.organizationId, null]);
  });
});

test("an organization that a write creates is its own", async () => {
  const id = "created";
  const row = { id, name: id, created_at: 0, updated_at: 0, sequence: 0, enterprise: 0 };
  await one.write(
    SYSTEM,
    "test",
    async (tx) => {
      const whole = { ...row, chain_hash: null, pruned_sequence: 0, invite_domains: "[]" };
      await builderOf(tx.db).insertInto("organization").values(whole).execute();
      await rename(tx, { organizationId: id }, "named");
      tx.record({ ...changeOf({ organizationId: id }), kind: "created" });
    },
    { locks: [null] },
  );
  expect(await nameOf(one.reader, { organizationId: id })).toBe("named");
});

test("changes of the registry of agents wait for no organization but their own, and none waits for them", async () => {
  const [owner, neighbour, free] = await Promise.all([1, 2, 3].map(() => makeOrganization(one)));
  if (!owner || !neighbour || !free) throw new Error("an organization is missing");
  const held = await holdLocks(url, [neighbour.organizationId]);
  const registration = {
    ...{ description: "", command: "coder", form: AgentForm.TEXT, takesSettings: false, isDefault: false },
    name: "coder",
  };
  const id = await registerAgent(one, { ...registration, organizationId: null });
  await makeAgentDefault(one, null, id);
  await unregisterAgent(one, null, id);
  const both = await holdLocks(url, [owner.organizationId, null]);
  const adding = registerAgent(one, { ...registration, organizationId: owner.organizationId });
  await untilWaiting(url, 1);
  await other.write(SYSTEM, "test", async (tx) => tx.record(changeOf(free)), within(free));
  await both.release();
  await adding;
  await held.release();
});

test("what belongs to no organization waits for its own lock, and organizations do not wait for it", async () => {
  const scope = await makeOrganization(one);
  const held = await holdLocks(url, [null]);
  expect(await one.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope))).toBe(
    scope.organizationId,
  );
  const waiting = one.write(SYSTEM, "test", async () => "written", { locks: [scope.organizationId, null] });
  await untilWaiting(url, 1);
  await held.release();
  expect(await waiting).toBe("written");
});
