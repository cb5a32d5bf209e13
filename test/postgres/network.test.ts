import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import pg from "pg";
import { lockForWrite } from "../../src/store/postgres/locks.ts";
import { post, repository } from "../harness/call.ts";
import { type DatabaseLink, startLinks } from "../harness/database-link.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { leaders, startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let url: string;
let link: DatabaseLink;
/** Reaches the database by the link, and leads the jobs at first. */
let linked: TestServer;
let other: TestServer;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  [link] = (await startLinks(url, 1)) as [DatabaseLink];
  const servers = await startServers(url, 2, { urlOf: (index) => (index === 0 ? link.url : url) });
  [linked, other] = servers as [TestServer, TestServer];
});
afterEach(() => link.enter("open"));
afterAll(async () => {
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

const create = (server: TestServer, name: string, key: string = crypto.randomUUID()) =>
  post(
    server,
    "ProjectService/CreateProject",
    { name, initializer: repository("https://git.example.org/team/hello.git") },
    server.token,
    { "idempotency-key": key },
  );
const named = async (name: string) => {
  const filter = { search: name };
  const { projects } = await succeeded(post(other, "ProjectService/ListProjects", { filter }));
  return projects;
};
const readiness = async (server: TestServer) => {
  const res = await fetch(`${server.url}/readyz`);
  const { reason } = (await res.json()) as { readonly reason?: string };
  return { status: res.status, reason };
};

describe("a server whose network to the database", () => {
  test.each([
    ["is cut without a word", "silent", /^the database cannot be reached: it does not answer$/],
    ["breaks", "refused", /^the connection to the database broke$/],
  ] as const)("%s says so, goes on, and serves when it is back", async (_, state, reason) => {
    const { project } = await succeeded(create(linked, `before ${state}`));
    const read = () => post(linked, "ProjectService/GetProject", { projectId: project.id });
    await link.enter(state);
    for (const answer of await Promise.all([read(), create(linked, `cut ${state}`)]))
      expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    await until(
      () => readiness(linked),
      (found) => found.status === 503 && reason.test(found.reason ?? ""),
    );
    expect((await fetch(`${linked.url}/healthz`)).status).toBe(200);
    await succeeded(create(other, `meanwhile ${state}`));

    await link.enter("open");
    await until(
      () => readiness(linked),
      ({ status }) => status === 200,
    );
    expect((await succeeded(read())).project).toEqual(project);
    await succeeded(create(linked, `after ${state}`));
    expect(await named(`cut ${state}`)).toEqual([]);
    expect(linked.process.exitCode).toBeNull();
  });

  test("is cut in a write leaves its locks to the others", async () => {
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    await holder.query("begin");
    const { organizationId } = await succeeded(post(other, "IdentityService/GetAuthenticatedIdentity"));
    await lockForWrite(holder as unknown as pg.PoolClient, [organizationId]);
    const key = crypto.randomUUID();
    const cut = create(linked, "cut in a write", key);
    await until(
      async () => (await onCluster(url, "select from pg_locks where not granted")).rowCount,
      (count) => count === 1,
    );
    await link.enter("silent");
    // The engine gives the lock to a client that is gone.
    await holder.query("commit");
    await holder.end();
    const began = performance.now();
    await succeeded(create(other, "cut in a write", key));
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(`a server that was cut off in a write left its locks after ${seconds} s\n`);
    const answer = await cut;
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    expect(await named("cut in a write")).toHaveLength(1);
  });

  test("breaks when it has committed says that it is unavailable, and the key gets the answer elsewhere", async () => {
    const key = crypto.randomUUID();
    await link.enter("unheard-commits");
    const answer = await create(linked, "unheard", key);
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    const [project] = await named("unheard");
    const again = await create(other, "unheard", key);
    expect([again.status, again.header.get("idempotency-replayed")]).toEqual([200, "true"]);
    expect(again.body.project.id).toBe(project.id);
    expect(await named("unheard")).toHaveLength(1);
  });

  test("is cut stops when it is asked to", async () => {
    const third = await startServer({
      dataDir: linked.dataDir,
      env: { CHARTROOM_DATABASE_URL: link.url },
    });
    await link.enter("silent");
    third.process.kill("SIGTERM");
    const [code] = await once(third.process, "exit");
    expect([code, third.logText()]).toEqual([0, expect.any(String)]);
    // The jobs are run by somebody else by now.
    await until(
      () => leaders(url),
      (found) => found.length === 1,
    );
  });
});
