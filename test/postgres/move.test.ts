import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { type DatabaseLink, startLinks } from "../harness/database-link.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const PROJECTS = 120;

let cluster: PostgresCluster;
let dataDir: string;
let token: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  const server = await startServer();
  ({ dataDir, token } = server);
  for (let start = 0; start < PROJECTS; start += 40) {
    const projects = Array.from({ length: 40 }, (_, index) => ({
      name: `Ärger ${start + index}`,
      initializer: { specs: [{ git: { remoteUri: `https://git.example.org/team/p${start + index}.git` } }] },
    }));
    await succeeded(post(server, "ProjectService/CreateProjects", { projects }));
  }
  await server.stop();
});
afterAll(async () => {
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

const command = async (...args: string[]) => {
  const { code, stdout, stderr } = await runCommand(args);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
};

/** Returns what a server over the data answers to lists and searches. */
async function answers(server: TestServer) {
  const pagination = { pageSize: 100 };
  const lists = await Promise.all(
    [{}, { filter: { search: "ärger 7" } }, { filter: { search: "r" } }, { filter: { search: "p1" } }].map(
      (request) => succeeded(post(server, "ProjectService/ListProjects", { pagination, ...request }, token)),
    ),
  );
  return lists.map(({ projects }) => projects);
}

/** Starts a server over the data, with its key file, and returns what it answers. */
async function answersOf(folder: string, url?: string) {
  const server = await startServer({
    dataDir: folder,
    args: ["--key-file", join(dataDir, "key.json")],
    ...(url !== undefined && { env: { CHARTROOM_DATABASE_URL: url } }),
  });
  const found = await answers(server);
  await server.stop();
  return found;
}

const auditOf = (...args: string[]) =>
  command("audit", "verify", "--key-file", join(dataDir, "key.json"), ...args);
const chains = (text: string) => text.split("\n").filter((line) => line.startsWith("organization"));

/** Waits until the engine has seen that the connections of an ended process are gone. */
const untilSessionsEnd = (url: string) =>
  until(
    async () =>
      (await onCluster(url, "select from pg_stat_activity where application_name = 'chartroom session'"))
        .rowCount,
    (sessions) => sessions === 0,
  );

test("data moves into a database and back, and nothing of it changes", async () => {
  const url = await emptyDatabase(cluster);
  const before = await answersOf(dataDir);
  expect(before.map((projects) => projects.length)).toEqual([100, 11, 100, 31]);
  const audit = chains(await auditOf("--data-dir", dataDir));
  const report = await command("move", "--from", dataDir, "--to", url);
  expect(report).toMatch(/^copying the rows of all tables\n(?!copying)/);
  expect(report).toMatch(/^\d+ rows of \d+ tables are in /m);
  expect(report).toContain("every chain holds");
  const folder = temporaryFolder();
  expect(await answersOf(folder, url)).toEqual(before);
  expect(chains(await auditOf("--database-url", url))).toEqual(audit);
  const back = join(temporaryFolder(), "data");
  await command("move", "--from", url, "--to", back, "--key-file", join(dataDir, "key.json"));
  expect(await answersOf(back)).toEqual(before);
  expect(chains(await auditOf("--data-dir", back))).toEqual(audit);
});

test("a backup of a database is one that a folder can be made of, and the other way round", async () => {
  const [url, copy] = [await emptyDatabase(cluster), await emptyDatabase(cluster)];
  const key = ["--key-file", join(dataDir, "key.json")];
  const before = await answersOf(dataDir);
  const files = [join(temporaryFolder(), "a.backup"), join(temporaryFolder(), "b.backup")] as const;
  await command("backup", files[0], "--data-dir", dataDir, ...key);
  await command("restore", files[0], "--database-url", url, "--data-dir", temporaryFolder(), ...key);
  const server = await startServer({
    dataDir: temporaryFolder(),
    args: key,
    env: { CHARTROOM_DATABASE_URL: url },
  });
  // While it runs.
  await command("backup", files[1], "--database-url", url, "--data-dir", temporaryFolder(), ...key);
  await server.stop();
  await command("restore", files[1], "--database-url", copy, "--data-dir", temporaryFolder(), ...key);
  expect(await answersOf(temporaryFolder(), copy)).toEqual(before);
  const folder = join(temporaryFolder(), "restored");
  await command("restore", files[1], "--data-dir", folder, ...key);
  expect(await answersOf(folder)).toEqual(before);
});

test("a move is refused to where something is, while a server runs, and between two of a kind", async () => {
  const url = await emptyDatabase(cluster);
  const server = await startServer({
    dataDir: temporaryFolder(),
    env: { CHARTROOM_DATABASE_URL: url },
  });
  const refusal = async (...args: string[]) => {
    const { code, stderr } = await runCommand(["move", "--key-file", join(dataDir, "key.json"), ...args]);
    expect(code).toBe(1);
    return stderr;
  };
  expect(await refusal("--from", dataDir, "--to", url)).toContain(
    "a server or another command uses the database",
  );
  await server.stop();
  expect(await refusal("--from", dataDir, "--to", url)).toContain("the database holds data already");
  expect(await refusal("--from", url, "--to", dataDir)).toContain("there is a database in");
  expect(await refusal("--from", dataDir, "--to", temporaryFolder())).toContain("one side of a move");
  const absent = join(temporaryFolder(), "absent");
  expect(await refusal("--from", absent, "--to", url)).toContain("there is no database in");
  expect(existsSync(absent)).toBe(false);
});

test("a move that is broken off leaves the target empty, and can be repeated", async () => {
  const url = await emptyDatabase(cluster);
  // However late it is killed, its commit never reaches the database.
  const [link] = (await startLinks(url, 1)) as [DatabaseLink];
  await link.enter("held-commits", "git.example.org");
  const moving = spawn(process.execPath, ["bin/chartroom.js", "move", "--from", dataDir, "--to", link.url], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: moving.stdout })) if (line.startsWith("copying")) break;
  moving.kill("SIGKILL");
  const count = async () =>
    (await onCluster(url, "select count(*)::int as count from organization")).rows[0].count;
  expect(await count()).toBe(0);
  await untilSessionsEnd(url);
  expect(await count()).toBe(0);
  await command("move", "--from", dataDir, "--to", url);
  expect(chains(await auditOf("--database-url", url))).toEqual(chains(await auditOf("--data-dir", dataDir)));
});

test("a move to a folder that is interrupted leaves nothing of the folder", async () => {
  const url = await emptyDatabase(cluster);
  await command("move", "--from", dataDir, "--to", url);
  const [link] = (await startLinks(url, 1)) as [DatabaseLink];
  const folder = join(temporaryFolder(), "made", "data");
  const key = ["--key-file", join(dataDir, "key.json")];
  const moving = spawn(
    process.execPath,
    ["bin/chartroom.js", "move", "--from", link.url, "--to", folder, ...key],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const stderr = text(moving.stderr);
  // The rows of the other tables never arrive.
  for await (const line of createInterface({ input: moving.stdout })) if (line.startsWith("copying")) break;
  await link.enter("silent");
  expect(readdirSync(folder)).toContain("chartroom.db.draft");
  moving.kill("SIGINT");
  await once(moving, "close");
  expect([moving.signalCode, await stderr]).toEqual([
    "SIGINT",
    "chartroom: interrupted: nothing was written\n",
  ]);
  expect(readdirSync(dirname(dirname(folder)), { recursive: true })).toEqual([]);
  await link.enter("refused");
  await untilSessionsEnd(url);
  await command("move", "--from", url, "--to", folder, ...key);
  expect(await answersOf(folder)).toEqual(await answersOf(dataDir));
});
