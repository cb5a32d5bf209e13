import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pg from "pg";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import {
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { firstToken, startServers } from "../harness/several-servers.ts";

let cluster: PostgresCluster;
let server: TestServer;
let url: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  [server] = (await startServers(url, 1)) as [TestServer];
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

const diagnose = async (databaseUrl: string, dataDir = server.dataDir) => {
  const args = ["doctor", "--data-dir", dataDir, "--port", "0"];
  const { code, stdout } = await runHostedCommand(args, { CHARTROOM_DATABASE_URL: databaseUrl });
  return { code, stdout };
};

test("the doctor finds nothing wrong while a server runs, and names the engine", async () => {
  const { code, stdout } = await diagnose(url);
  expect([code, stdout.trim().split("\n").at(-1)]).toEqual([0, "nothing is wrong"]);
  expect(stdout).toMatch(/^ok +database +PostgreSQL \d+/m);
});

test("the doctor tries a change, leaves nothing of it, and says why none is taken", async () => {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const rows = async () => (await admin.query("select count(*) from fact")).rows;
  const before = await rows();
  expect((await diagnose(url)).code).toBe(0);
  expect(await rows()).toEqual(before);
  await admin.query("create role looks login; grant select on all tables in schema public to looks");
  await admin.end();
  const as = new URL(url);
  as.username = "looks";
  const { code, stdout } = await diagnose(String(as));
  expect(code).toBe(1);
  expect(stdout).toContain(
    "wrong  database     it accepts no changes: the user may not write to the tables of the database\n",
  );
});

/** Returns the number of tables in a database. */
const tablesIn = async (databaseUrl: string) => {
  const { rows } = await onCluster(
    databaseUrl,
    "select count(*)::int as count from pg_tables where schemaname = 'public'",
  );
  return rows[0].count;
};

test("an empty database is no new installation for the data folder of another, nor for a command", async () => {
  const wrongUrl = await emptyDatabase(cluster);
  const what = `is empty, although a server has left server.url in ${server.dataDir}`;
  const found = await diagnose(wrongUrl);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(new RegExp(`^wrong +database +the database \\S+ at \\S+ ${what}\\n`, "m"));
  expect(found.stdout).toContain("-> correct --database-url, restore a backup, or copy a data folder there");
  const env = { CHARTROOM_DATABASE_URL: wrongUrl };
  await expect(startHostedServer({ dataDir: server.dataDir, env })).rejects.toThrow(
    `${what}: correct --database-url`,
  );
  const listed = await runHostedCommand(["token", "list", "--data-dir", server.dataDir], env);
  expect([listed.code, listed.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^chartroom: there is nothing in .*: correct --database-url, or start the server once\n$/,
    ),
  ]);
  expect(await tablesIn(wrongUrl)).toBe(0);

  const dataDir = temporaryFolder();
  copyFileSync(join(server.dataDir, "key.json"), join(dataDir, "key.json"));
  const fresh = await diagnose(wrongUrl, dataDir);
  expect(fresh.code).toBe(0);
  expect(fresh.stdout).toMatch(/^note +database +it is empty: .*\n +-> .*or correct --database-url$/m);
  const started = await startServer({ dataDir, env });
  expect(await firstToken(started)).not.toBe("");
});

test("the doctor says that a database cannot be reached", async () => {
  await cluster.crash();
  const away = await diagnose(url);
  expect(away.code).toBe(1);
  expect(away.stdout).toMatch(/^wrong +database +the database \S+ at \S+ cannot be used: /m);
  expect(away.stdout).toContain("1 thing is wrong");
});
