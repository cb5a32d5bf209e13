import { afterAll, beforeAll, expect, test } from "@jest/globals";
import pg from "pg";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { runHostedCommand, stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";

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

const diagnose = async (databaseUrl: string) => {
  const args = ["doctor", "--data-dir", server.dataDir];
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

test("the doctor says that a database holds nothing of this release, or that it cannot be reached", async () => {
  const empty = await diagnose(await emptyDatabase(cluster));
  expect(empty.code).toBe(1);
  expect(empty.stdout).toMatch(/^wrong +database +.*is not of this release: start the server with it once/m);
  await cluster.crash();
  const away = await diagnose(url);
  expect(away.code).toBe(1);
  expect(away.stdout).toMatch(/^wrong +database +the database \S+ at \S+ cannot be used: /m);
  expect(away.stdout).toContain("1 thing is wrong");
});
