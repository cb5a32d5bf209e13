import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { FEATURE_LEVEL } from "../../src/store/feature-level.ts";
import { post } from "../harness/call.ts";
import {
  answersOn,
  endEarlierExecutions,
  makeEarlierExecutions,
  OLDER,
} from "../harness/earlier-executions.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { testUnless } from "../harness/program.ts";
import { lackOf, nextRelease, sourcesOf } from "../harness/release.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const lack = lackOf(OLDER);

/**
 * The level after that of this tree, at which the changed sources store a field that this tree does not know. No
 * earlier commit of the history can run alongside this tree, whose executions have other columns: so it is the older one.
 */
const NEXT = FEATURE_LEVEL + 1;
const setMark = `if (tx.featureLevel >= ${NEXT}) $2.upgradeMark = "marked";`;
const CHANGES = [
  ["src/store/feature-level.ts", /FEATURE_LEVEL = \d+/, `FEATURE_LEVEL = ${NEXT}`],
  ["proto/service/v1/project.proto", /^message Project \{$/m, "$&\n  string upgrade_mark = 1900;"],
  [
    "src/store/project/project.ts",
    /(insertProject.*?)(?=const json = toJsonObject\(ProjectSchema, (project)\))/s,
    `$1${setMark}\n`,
  ],
  [
    "src/store/project/project.ts",
    /(updateProject.*?)(?=const json = toJsonObject\(ProjectSchema, (after)\))/s,
    `$1${setMark}\n`,
  ],
  // Its tables differ, too.
  [
    "src/store/postgres/migrate.ts",
    / {2}\];\n\}/,
    `{ name: "9001-mark", statements: "alter table project add column mark text" },
     { name: "9002-mark", indexes: [{ name: "project_by_mark", definition: "on project (mark)" }] },\n$&`,
  ],
] as const;

let cluster: PostgresCluster;
const older = undefined;
let newer: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  newer = nextRelease(CHANGES);
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

/** Two servers over a new database, of which the first has made the first organization. */
async function startBoth() {
  const url = await emptyDatabase(cluster);
  const dataDir = temporaryFolder();
  const start = async (release: string | undefined) => {
    const server = await startServer({
      ...(release && { release }),
      dataDir,
      env: { CHARTROOM_DATABASE_URL: url },
    });
    return { ...server, token };
  };
  let token = "";
  const first = await start(older);
  token = await until(
    () => /cr_pat_\w+(?=\n)/.exec(first.output())?.[0] ?? "",
    (found) => found !== "",
  );
  const servers = { older: { ...first, token }, newer: await start(newer) };
  const one = async (statement: string) => Object.values((await onCluster(url, statement)).rows[0])[0];
  return {
    ...servers,
    dataDir,
    url,
    start,
    level: async () => Number(await one("select feature_level from installation")),
    storedOf: async (id: string) =>
      JSON.parse(String(await one(`select body from project where id = '${id}'`))),
    /** Returns the process of the engine that holds the lock of the jobs for one of the servers. */
    leader: () =>
      one(`select max(pid) from pg_locks where locktype = 'advisory' and granted and objsubid = 2
        and classid = ${0x43_48_41_52} and objid = 4
        and database = (select oid from pg_database where datname = current_database())`),
    rollbacks: async () =>
      Number(await one("select xact_rollback from pg_stat_database where datname = current_database()")),
  };
}

const create = async (server: TestServer, name: string) =>
  (
    await succeeded(
      post(server, "ProjectService/CreateProject", {
        name,
        initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
      }),
    )
  ).project;
const update = (server: TestServer, projectId: string, technicalDescription: string) =>
  post(server, "ProjectService/UpdateProject", { projectId, technicalDescription });

/** Requires that a server of the older release does not start, and says why. */
async function expectRefused(start: Promise<TestServer>): Promise<void> {
  await expect(start).rejects.toThrow(
    `the data has the feature level ${NEXT}, and this release knows ${FEATURE_LEVEL}: it would lose what a newer release has stored; start that release instead`,
  );
}

describe("an older server alongside a newer one", () => {
  test("updates the same rows, is restarted, and loses nothing of what the newer stores", async () => {
    const both = await startBoth();
    const [ofOlder, ofNewer] = [await create(both.older, "older"), await create(both.newer, "newer")];
    const updateAll = async (text: string) => {
      for (const { id } of [ofOlder, ofNewer])
        for (const server of [both.older, both.newer, both.older, both.newer]) {
          await succeeded(update(server, id, `${text} by ${server.port}`));
          expect((await both.storedOf(id)).upgradeMark ?? "").toBe("");
        }
    };
    await updateAll("before");
    // The newer has changed the tables, on which the older starts again; then the newer one runs the jobs.
    const led = await both.leader();
    expect(await both.older.stop()).toBe(0);
    both.older = await both.start(older);
    await until(both.leader, (pid) => pid !== null && pid !== led);
    // Each of its looks at who is there ends in a rollback.
    const looked = await both.rollbacks();
    await until(both.rollbacks, (count) => count >= looked + 15);
    await updateAll("after");
    expect(await both.level()).toBe(FEATURE_LEVEL);

    expect(await both.older.stop()).toBe(0);
    await until(both.level, (level) => level === NEXT);
    for (const { id } of [ofOlder, ofNewer]) {
      const { project } = await succeeded(update(both.newer, id, "marked"));
      expect(project.upgradeMark).toBe("marked");
      expect((await both.storedOf(id)).upgradeMark).toBe("marked");
    }
    await expectRefused(both.start(older));
    expect(both.newer.log().filter(({ featureLevel }) => featureLevel === NEXT)).toHaveLength(1);
    await both.newer.stop();
  });

  test("that was suspended while the level was raised writes nothing any more, and says why", async () => {
    const both = await startBoth();
    const { id } = await create(both.older, "shared");
    const { id: plain } = await create(both.older, "plain");
    both.older.process.kill("SIGSTOP");
    await until(both.level, (level) => level === NEXT);
    await succeeded(update(both.newer, id, "marked"));
    const before = [await both.storedOf(id), await both.storedOf(plain)];
    both.older.process.kill("SIGCONT");
    const late = await Promise.all([
      update(both.older, id, "late"),
      update(both.older, plain, "late"),
      post(both.older, "ProjectService/DeleteProject", { projectId: plain }),
    ]);
    expect(late.map(({ status, body }) => [status, body.code])).toEqual(
      Array.from(late, () => [503, "unavailable"]),
    );
    expect([await both.storedOf(id), await both.storedOf(plain)]).toEqual(before);
    expect(before[0].upgradeMark).toBe("marked");
    const readiness = async () => {
      const res = await fetch(`${both.older.url}/readyz`);
      const { reason } = (await res.json()) as { readonly reason?: string };
      return { status: res.status, reason };
    };
    const red = await until(readiness, ({ status }) => status === 503);
    expect(red.reason).toContain("start that release instead");
    // It ends when it is asked to, and not before.
    expect(both.older.process.exitCode).toBeNull();
    expect(await both.older.stop()).toBe(0);
    await expectRefused(
      startServer({
        dataDir: temporaryFolder(),
        args: ["--key-file", join(both.dataDir, "key.json")],
        env: { CHARTROOM_DATABASE_URL: both.url },
      }),
    );
    await both.newer.stop();
  });
});

describe("a server from before executions had columns of their own", () => {
  testUnless(lack)(
    "keeps this one from its start, and is refused on what this one has rewritten",
    async () => {
      const release = sourcesOf(OLDER);
      const env = { CHARTROOM_DATABASE_URL: await emptyDatabase(cluster), CHARTROOM_LEASE_DURATION: "3600" };
      const dataDir = temporaryFolder();
      const first = await startServer({ release, dataDir, env });
      const token = await until(
        () => /cr_pat_\w+(?=\n)/.exec(first.output())?.[0] ?? "",
        (found) => found !== "",
      );
      const made = await makeEarlierExecutions({ ...first, token });
      await expect(startServer({ dataDir, env })).rejects.toThrow(
        "a server of an earlier release runs, which cannot use the tables of this one: stop all of them, then start this one",
      );
      const before = await answersOn({ ...first, token }, made.ids);
      expect(await first.stop()).toBe(0);

      const server = { ...(await startServer({ dataDir, env })), token };
      expect(await answersOn(server, made.ids)).toEqual(before);
      await endEarlierExecutions(server, made);
      expect(server.log().filter(({ table }) => table !== undefined)).toMatchObject([
        { table: "workflow_execution", done: made.ids.length, total: made.ids.length },
        { table: "workflow_action" },
      ]);
      await expect(startServer({ release, dataDir, env })).rejects.toThrow(
        "the data has the feature level 2, and this release knows 1",
      );
      expect(await server.stop()).toBe(0);
      const unfilled = "select from workflow_action where progress is null or body like '%status%'";
      expect((await onCluster(env.CHARTROOM_DATABASE_URL, unfilled)).rowCount).toBe(0);
    },
  );
});
