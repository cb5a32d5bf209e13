import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
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

describe("a start", () => {
  const failed = async (env: Record<string, string>, args: readonly string[] = []) => {
    const dataDir = temporaryFolder();
    const { code, stderr } = await runCommand(["serve", "--port", "0", "--data-dir", dataDir, ...args], env);
    expect(code).toBe(1);
    return stderr;
  };

  test.each([
    [
      "no URL of a database",
      "mysql://localhost/x",
      "must be a URL such as postgres://user@host:5432/database",
    ],
    ["no database", "postgres://localhost", "must be a URL such as postgres://user@host:5432/database"],
    ["a password", "postgres://me:secret@localhost/x", "use --database-password-file or PGPASSWORD"],
    ["an unknown TLS mode", "postgres://localhost/x?sslmode=maybe", 'has the sslmode "maybe"'],
  ])("with %s says what to write", async (_, url, sentence) => {
    const stderr = await failed({ CHARTROOM_DATABASE_URL: url });
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain("secret");
  });

  test("where nothing listens says so", async () => {
    const stderr = await failed({ CHARTROOM_DATABASE_URL: "postgres://postgres@127.0.0.1:1/x" });
    expect(stderr).toContain("the database x at 127.0.0.1:1 cannot be used");
    expect(stderr).toContain("nothing listens at its address");
  });

  test("without the database says that it does not exist", async () => {
    expect(await failed({ CHARTROOM_DATABASE_URL: `${cluster.url}/absent` })).toContain(
      "the database does not exist",
    );
  });

  test("on a database of another encoding says how to create one", async () => {
    const url = await emptyDatabase(cluster, "encoding 'LATIN1' template template0");
    expect(await failed({ CHARTROOM_DATABASE_URL: url })).toContain("create one with");
  });

  test("with a password file that is missing names it", async () => {
    const url = await emptyDatabase(cluster);
    const stderr = await failed({ CHARTROOM_DATABASE_URL: url }, ["--database-password-file", "/absent"]);
    expect(stderr).toContain("--database-password-file /absent cannot be read");
  });

  test("with keys that are not those of the data does not happen", async () => {
    const url = await emptyDatabase(cluster);
    const server = await serverOver(url, temporaryFolder());
    await server.stop();
    expect(await failed({ CHARTROOM_DATABASE_URL: url })).toContain("is not the one that the data in");
  });

  test("of several servers at once on an empty database makes one organization", async () => {
    const url = await emptyDatabase(cluster);
    const dataDir = temporaryFolder();
    const servers = await Promise.all(Array.from({ length: 3 }, () => serverOver(url, dataDir)));
    await firstToken(...servers);
    await Promise.all(servers.map((server) => server.stop()));
    const { rows } = await onCluster(url, "select count(*)::int as count from organization");
    expect(rows).toEqual([{ count: 1 }]);
    expect(servers.filter((server) => server.output().includes("This is the first start"))).toHaveLength(1);
  });
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
