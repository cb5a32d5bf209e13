import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { firstToken, startServers } from "../harness/several-servers.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

/** Starts a server over a database, with the key file of the others. */
function serverOver(url: string, dataDir: string): Promise<TestServer> {
  return startServer({ dataDir, env: { CHARTROOM_DATABASE_URL: url } });
}

test("a start of several servers at once on an empty database makes one organization", async () => {
  const url = await emptyDatabase(cluster);
  const dataDir = temporaryFolder();
  const servers = await Promise.all(Array.from({ length: 3 }, () => serverOver(url, dataDir)));
  await firstToken(...servers);
  await Promise.all(servers.map((server) => server.stop()));
  const { rows } = await onCluster(url, "select count(*)::int as count from organization");
  expect(rows).toEqual([{ count: 1 }]);
  expect(servers.filter((server) => server.output().includes("This is the first start"))).toHaveLength(1);
});

describe("two servers over one database", () => {
  let one: TestServer;
  let other: TestServer;
  beforeAll(async () => {
    [one, other] = (await startServers(await emptyDatabase(cluster), 2)) as [TestServer, TestServer];
  });

  const create = (server: TestServer, name: string) =>
    succeeded(
      post(server, "ProjectService/CreateProject", {
        name,
        initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
      }),
    );

  test("read at once what the other has written", async () => {
    const { project } = await create(one, "shared");
    const found = await succeeded(post(other, "ProjectService/GetProject", { projectId: project.id }));
    expect(found.project).toEqual(project);
  });

  test("answer a repeated request of the other from what it stored", async () => {
    const body = {
      name: "once",
      initializer: { specs: [{ contextUrl: { url: "https://git.example.org/a/b" } }] },
    };
    const headers = { "idempotency-key": "k" };
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        post(index % 2 ? one : other, "ProjectService/CreateProject", body, undefined, headers),
      ),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect(answers.filter(({ header }) => header.get("idempotency-replayed") === null)).toHaveLength(1);
  });

  test("store and find the longest texts that are indexed, which no index of the engine takes whole", async () => {
    // Letters of three bytes each, in no order that compresses.
    const letters = (count: number) =>
      Array.from({ length: count }, (_, index) => String.fromCharCode(0x4e00 + ((index * 7_919) % 20_000)));
    const remoteUri = `https://git.example.org/${letters(2_000).join("")}`;
    const annotations = { "example.org/text": letters(512).join("") };
    const request = { name: "long", initializer: { specs: [{ git: { remoteUri } }] }, annotations };
    const answer = await post(one, "ProjectService/CreateProject", request);
    expect(answer.status).toBe(200);
    const { project } = answer.body;
    const find = (filter: object) => succeeded(post(other, "ProjectService/ListProjects", { filter }));
    const byRemote = await find({ specRemoteUris: [remoteUri] });
    expect(byRemote.projects.map(({ id }: { id: string }) => id)).toEqual([project.id]);
    const byAnnotation = await find({ annotations });
    expect(byAnnotation.projects.map(({ id }: { id: string }) => id)).toEqual([project.id]);
  });
});
