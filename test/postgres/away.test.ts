import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let url: string;
let server: TestServer;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  [server] = (await startServers(url, 1)) as [TestServer];
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

describe("a server whose database is read-only", () => {
  /** Returns the answers of the server while it is so; the readiness is one that stays. */
  async function answersWhile(readOnly: () => Promise<unknown>, writable: () => Promise<unknown>) {
    const { project } = await succeeded(create("readable"));
    await readOnly();
    const reason = "the database cannot be written: it is read-only, like a standby";
    const red = await until(readiness, (found) => found.reason === reason);
    for (let time = 0; time < 3; time++) {
      const written = await create("unwritten");
      expect([written.status, written.body.code]).toEqual([503, "unavailable"]);
      const read = await succeeded(post(server, "ProjectService/GetProject", { projectId: project.id }));
      expect(read.project).toEqual(project);
      expect(await readiness()).toEqual(red);
    }
    const started = await runCommand(["serve", "--port", "0", "--data-dir", server.dataDir]);
    expect([started.code, started.stderr]).toEqual([1, expect.stringContaining("it is read-only")]);
    await writable();
    await until(readiness, ({ status }) => status === 200);
    await succeeded(create("written"));
    expect(server.process.exitCode).toBeNull();
  }

  test("by its settings says so, reads on, and serves when it can be written", () => {
    const set = (value: string) =>
      onCluster(`${cluster.url}/postgres`, `alter database ${new URL(url).pathname.slice(1)} ${value}`);
    const reconnect = () =>
      onCluster(
        `${cluster.url}/postgres`,
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'chartroom %'",
      );
    return answersWhile(
      async () => {
        await set("set default_transaction_read_only = on");
        await reconnect();
      },
      // Its connections need not break.
      () => set("reset default_transaction_read_only"),
    );
  });

  test("as a standby is says so, reads on, and serves when it can be written", () => {
    const signal = join(cluster.folder, "data", "standby.signal");
    return answersWhile(
      async () => {
        await cluster.crash();
        writeFileSync(signal, "");
        await cluster.restart();
      },
      async () => {
        await cluster.crash();
        rmSync(signal);
        await cluster.restart();
      },
    );
  });
});
