import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { FEATURE_LEVEL, mayStore } from "../../src/store/feature-level.ts";
import { lockForWrite } from "../../src/store/postgres/locks.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";
import { until } from "../harness/until.ts";

/** A level that this release does not know, and one below it. */
const [NEWER, OLDER] = [FEATURE_LEVEL + 1, FEATURE_LEVEL - 1];

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off"]);
  url = await emptyDatabase(cluster);
  store = await openProcess(url, { presence: "server" });
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

const setLevel = (level: number) => onCluster(url, `update installation set feature_level = ${level}`);
const levelOf = async () =>
  Number((await onCluster(url, "select feature_level from installation")).rows[0].feature_level);
const addFact = (name: string) =>
  store.write(
    SYSTEM,
    "test",
    async ({ db }) => {
      await builderOf(db).insertInto("fact").values({ name, value: "" }).execute();
    },
    { locks: ["organization"] },
  );
const facts = async () =>
  (await builderOf(store.reader).selectFrom("fact").select("name").orderBy("name").execute()).map(
    ({ name }) => name,
  );

/** Opens a connection in a transaction. */
async function begun(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  return client;
}

const waiting = () =>
  onCluster(url, "select from pg_locks where locktype = 'advisory' and not granted").then(
    ({ rowCount }) => rowCount,
  );

test("a new database has the level of the release, and a write sees it", async () => {
  expect(await levelOf()).toBe(FEATURE_LEVEL);
  const seen = await store.write(SYSTEM, "test", async (tx) =>
    [FEATURE_LEVEL, NEWER].map((level) => mayStore(tx, level)),
  );
  expect(seen).toEqual([true, false]);
});

describe("a process that is older than the data", () => {
  test("writes nothing, though it began to wait for its lock before the level was raised", async () => {
    const raising = await begun();
    await lockForWrite(raising as unknown as pg.PoolClient, "installation");
    const late = addFact("late");
    const noted = store.note("runner", "absent", { seen_at: 1 });
    for (const each of [late, noted]) each.catch(() => {});
    await until(waiting, (count) => count === 2);
    await raising.query("update installation set feature_level = $1", [NEWER]);
    await raising.query("commit");
    await raising.end();
    const refusal = {
      name: "StoreUnavailable",
      problem: `the data has the feature level ${NEWER}, and this release knows ${FEATURE_LEVEL}: it would lose what a newer release has stored; start that release instead`,
    };
    await expect(late).rejects.toMatchObject(refusal);
    await expect(noted).rejects.toMatchObject(refusal);
    // Not even a mark of its own, whose column may mean something else by now.
    await expect(store.touchAll([])).rejects.toMatchObject(refusal);
    expect(await facts()).toEqual([]);
    expect(store.problem()).toContain("start that release instead");
    await store.probe();
    expect(store.problem()).toContain("start that release instead");
    await setLevel(FEATURE_LEVEL);
    await store.probe();
    expect(store.problem()).toBeUndefined();
    await addFact("in time");
  });

  test("finds out without a write", async () => {
    await setLevel(NEWER);
    // As after a time of which it knows nothing.
    await onCluster(
      url,
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'chartroom session'",
    );
    await until(
      () => store.problem() ?? "",
      (problem) => problem.includes("start that release instead"),
    );
    await setLevel(FEATURE_LEVEL);
    await until(
      () => store.problem(),
      (problem) => problem === undefined,
    );
  });

  test.each(["server", "alone", "alongside"] as const)("does not start (%s)", async (presence) => {
    await setLevel(NEWER);
    if (presence === "alone") await store.close();
    await expect(openProcess(url, { presence })).rejects.toMatchObject({
      name: "NewerData",
      message: expect.stringContaining("start that release instead"),
    });
    await setLevel(FEATURE_LEVEL);
    if (presence === "alone") store = await openProcess(url, { presence: "server" });
  });
});

describe("the level", () => {
  const leading = () =>
    until(
      () => store.leads(),
      (leads) => leads,
    );
  /** Asks as the job does, until the level is raised. @returns the answers */
  async function raised(): Promise<readonly (number | undefined)[]> {
    const answers: (number | undefined)[] = [];
    await until(
      async () => answers[answers.push(await store.raiseFeatureLevel()) - 1],
      (level) => level !== undefined,
    );
    return answers;
  }

  test("is raised by the leader when no older server is there for ten looks", async () => {
    await leading();
    await setLevel(OLDER);
    const older = await begun();
    await older.query("commit");
    await older.query("select pg_advisory_lock_shared($1::int, $2::int)", [0x43_48_4c_56, OLDER]);
    for (let look = 0; look < 15; look++) expect(await store.raiseFeatureLevel()).toBeUndefined();
    expect(await levelOf()).toBe(OLDER);
    await older.end();
    expect(await raised()).toEqual([...Array.from({ length: 9 }, () => undefined), FEATURE_LEVEL]);
    expect(await levelOf()).toBe(FEATURE_LEVEL);
    expect(await store.raiseFeatureLevel()).toBeUndefined();
  });

  test("is not raised while a write goes on that began below it", async () => {
    const other = await openProcess(await fresh(), { presence: "server" });
    await until(
      () => other.leads(),
      (leads) => leads,
    );
    await setLevel(OLDER);
    const writing = await begun();
    await lockForWrite(writing as unknown as pg.PoolClient, ["organization"]);
    for (let look = 0; look < 9; look++) expect(await other.raiseFeatureLevel()).toBeUndefined();
    // The tenth look waits for the write, but not until it ends, since the writes of all organizations wait meanwhile.
    expect(await other.raiseFeatureLevel()).toBeUndefined();
    expect(await levelOf()).toBe(OLDER);
    await writing.query("commit");
    await writing.end();
    expect(await other.raiseFeatureLevel()).toBe(FEATURE_LEVEL);
    await other.close();
  });

  /** Continues with a database of its own: a store looks no more once it has found its level. */
  async function fresh(): Promise<string> {
    await store.close();
    url = await emptyDatabase(cluster);
    store = await openProcess(url);
    return url;
  }
});
