import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let server: TestServer;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  const url = await emptyDatabase(cluster);
  server = await startServer({ dataDir: temporaryFolder(), env: { CHARTROOM_DATABASE_URL: url } });
  const [token = ""] = await until(
    () => server.output().match(/cr_pat_\w+(?=\n)/g) ?? [],
    (found) => found.length > 0,
  );
  server = { ...server, token };
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

const create = (name: string) =>
  post(server, "ProjectService/CreateProject", {
    name,
    initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
  });

const readiness = async () => {
  const res = await fetch(`${server.url}/readyz`);
  const { reason } = (await res.json()) as { readonly reason?: string };
  return { status: res.status, reason };
};

test("a server whose database is away says so, goes on, and serves when it is back", async () => {
  const { project } = await succeeded(create("before"));
  const read = () => post(server, "ProjectService/GetProject", { projectId: project.id });
  expect((await readiness()).status).toBe(200);

  await cluster.crash();
  for (const call of [
    read,
    () => create("meanwhile"),
    () => post(server, "ProjectService/ListProjects", {}),
  ]) {
    const { status, body } = await call();
    expect([status, body.code]).toEqual([503, "unavailable"]);
  }
  // Without another call too.
  const red = await until(readiness, ({ status }) => status === 503);
  expect(red.reason).toMatch(/^the database (cannot be reached|shuts down|.* broke)|^the connection/);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);

  await cluster.restart();
  await until(readiness, ({ status }) => status === 200);
  expect((await succeeded(read())).project).toEqual(project);
  await succeeded(create("after"));
  const { projects } = await succeeded(post(server, "ProjectService/ListProjects", {}));
  expect(projects.map(({ metadata }: { metadata: { name: string } }) => metadata.name).toSorted()).toEqual([
    "after",
    "before",
  ]);
  expect(server.process.exitCode).toBeNull();
});
