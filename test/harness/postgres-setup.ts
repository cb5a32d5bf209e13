import pg from "pg";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { requireUsable } from "../../src/store/postgres/requirements.ts";
import { type PostgresBuild, type PostgresCluster, startPostgres } from "./postgres-cluster.ts";
import { TEMPLATE, URL_VARIABLE } from "./postgres-template.ts";

/** Without forcing: the databases of tests need not outlive their machine. Tests of crashes start their own. */
const SETTINGS = ["fsync=off", "max_connections=500", "shared_buffers=128MB"];

/** Starts the server that a run of the tests uses. */
export default async function setUp(): Promise<void> {
  const { CHARTROOM_TEST_POSTGRES_BUILD: build = "embedded" } = process.env;
  // Commands that tests run reject it: it is no setting.
  delete process.env.CHARTROOM_TEST_POSTGRES_BUILD;
  const cluster = await startPostgres(build as PostgresBuild, SETTINGS);
  (globalThis as { postgresOfRun?: PostgresCluster }).postgresOfRun = cluster;
  await run(`${cluster.url}/postgres`, (client) => client.query(`create database ${TEMPLATE}`));
  await run(`${cluster.url}/${TEMPLATE}`, async (client) => {
    await requireUsable(client);
    await migrate(client);
  });
  process.env[URL_VARIABLE] = cluster.url;
}

async function run(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await work(client).finally(() => client.end());
}
