import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

test("what one server refuses past a limit, the others refuse a second later", async () => {
  const url = await emptyDatabase(cluster);
  const servers = await startServers(url, 3, { args: ["--refusals-per-address", "1"] });
  const [first, ...others] = servers as [TestServer, ...TestServer[]];
  expect((await post(first, "ProjectService/ListProjects", {}, "cr_pat_wrong")).status).toBe(401);
  for (const server of others) {
    // Calls with a valid token use nothing up: what counts came from the first.
    const refused = await until(
      () => post(server, "ProjectService/ListProjects"),
      ({ status }) => status === 429,
    );
    expect(reasonOf(refused)).toBe("TOO_MANY_CALLS");
  }
});
