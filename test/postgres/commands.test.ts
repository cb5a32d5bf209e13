import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { onOwnDisk, testWithOwnDisk } from "../harness/own-disk.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

/**
 * Every command of the operator, as a user of the database who is no superuser, in the order in which they are written
 * here: on what a server has made and, where they may, while it runs.
 */
let cluster: PostgresCluster;
let url: string;
let dataDir: string;
let server: TestServer;
let organizationId: string;

beforeAll(async () => {
  cluster = await startPostgres("embedded");
  await onCluster(`${cluster.url}/postgres`, "create role chartroom login");
  url = await ownDatabase();
  dataDir = temporaryFolder();
  server = await start();
  const token = await until(
    () => /cr_pat_\w+/.exec(server.output())?.[0] ?? "",
    (found) => found !== "",
  );
  server = { ...server, token };
  const { project } = await succeeded(
    post(server, "ProjectService/CreateProject", {
      name: "before",
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
    }),
  );
  organizationId = project.metadata.organizationId;
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

const ownDatabase = async () =>
  (await emptyDatabase(cluster, "owner chartroom")).replace("postgres@", "chartroom@");
const start = () => startServer({ dataDir, env: { CHARTROOM_DATABASE_URL: url } });

const run = (words: string, ...rest: readonly string[]) =>
  runCommand([...words.split(" "), ...rest, "--data-dir", dataDir], { CHARTROOM_DATABASE_URL: url });

/** Runs a command that succeeds. @returns what it prints */
async function printed(words: string, ...rest: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(words, ...rest);
  expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: "" });
  return stdout;
}

/** Returns the code of the answer to a token. */
const answerTo = async (token: string) =>
  (await post(server, "ProjectService/ListProjects", {}, token)).status;

test("organization create, list and enterprise", async () => {
  const made = await printed("organization create --name Second --email second@example.org");
  const [, id = "", , token = ""] =
    /^organization (\S+)\nadministrator (\S+)\n(cr_pat_\w+)\n$/.exec(made) ?? [];
  expect(await answerTo(token)).toBe(200);
  expect(await printed("organization list")).toMatch(new RegExp(`^${organizationId} .*\n${id} .*Second\n$`));
  expect(await printed(`organization enterprise ${id} on`)).toContain("Second is marked as enterprise");
});

test("member add, list, role and remove", async () => {
  const of = ["--organization", organizationId, "--email", "mary@example.org"];
  const token = (await printed("member add --name Mary", ...of)).trim();
  expect(await answerTo(token)).toBe(200);
  expect(await printed("member role --role administrator", ...of)).toContain("is an administrator now");
  expect(await printed("member list --organization", organizationId)).toMatch(
    /administrator +mary@example\.org +Mary/,
  );
  expect(await printed("member remove", ...of)).toContain("is no member any more");
  expect(await answerTo(token)).toBe(401);
});

test("account block and unblock, and subscription add", async () => {
  const of = ["--organization", organizationId, "--email", "john@example.org"];
  const token = (await printed("member add --name John", ...of)).trim();
  expect(await printed("subscription add --account john@example.org --name Team")).toMatch(/^[\w-]{36}\n$/);
  const receipt = await printed("account block john@example.org --reason", "left the team");
  expect(receipt).toContain("subscriptions cancelled: 1");
  expect(await answerTo(token)).toBe(403);
  expect(await printed("account unblock john@example.org")).toContain("has access again");
  expect(await answerTo(token)).toBe(200);
});

test("token create, list and revoke", async () => {
  const ids = async () => (await printed("token list --user admin@localhost")).match(/^[\w-]{36}/gm) ?? [];
  const before: readonly string[] = await ids();
  const token = (await printed("token create --user admin@localhost --days 1")).trim();
  expect(await answerTo(token)).toBe(200);
  const [id = ""] = (await ids()).filter((each) => !before.includes(each));
  expect(await printed("token revoke", id)).toBe(`revoked ${id}\n`);
  expect(await answerTo(token)).toBe(401);
});

test("agent add, list, default and remove", async () => {
  const id = /^agent (\S+)\n$/.exec(await printed("agent add echo --command", "echo hello"))?.[1] ?? "";
  expect(await printed("agent default echo")).toContain("echo is the default agent");
  expect(await printed("agent list")).toMatch(new RegExp(`^${id} +echo +all +text +.*default\n$`));
  expect(await printed("agent remove echo")).toContain("is no longer registered");
  expect(await printed("agent list")).toBe("");
});

test("audit verify, and backup while the server runs", async () => {
  const chains = await printed("audit verify");
  expect(chains).toContain("every chain holds");
  const file = join(dataDir, "served.backup");
  expect(await printed("backup", file)).toContain(`The backup is in ${file}`);
  expect(existsSync(file)).toBe(true);
});

test("commands that need the servers stopped say so while one runs, and change nothing", async () => {
  const keys = readFileSync(join(dataDir, "key.json"), "utf8");
  const absent = join(temporaryFolder(), "absent");
  const commands = [
    ["keys rotate"],
    ["organization remove --yes --force", organizationId],
    ["restore", join(dataDir, "served.backup")],
    ["move --key-file", join(dataDir, "key.json"), "--from", url, "--to", absent],
  ] as const;
  for (const [words, ...rest] of commands) {
    const { code, stderr } = await run(words, ...rest);
    expect([words, code]).toEqual([words, 1]);
    expect(stderr).toContain("a server or another command uses the database");
    expect(stderr).toMatch(/stop them/);
  }
  expect(readFileSync(join(dataDir, "key.json"), "utf8")).toBe(keys);
  expect(existsSync(join(absent, "chartroom.db"))).toBe(false);
  expect(await answerTo(server.token)).toBe(200);
});

test("keys rotate, after which every server needs the new key file", async () => {
  const { runner } = await succeeded(post(server, "RunnerService/CreateRunner", { name: "In the attic" }));
  await succeeded(
    post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", {
      runnerId: runner.runnerId,
      host: "git.example.org",
      token: "value",
    }),
  );
  await server.stop();
  const keyFile = join(dataDir, "key.json");
  const another = temporaryFolder();
  copyFileSync(keyFile, join(another, "key.json"));
  expect(await printed("keys rotate")).toContain(
    "1 host authentication token, 0 webhook secrets and 0 secrets",
  );
  const onAnother = () => startServer({ dataDir: another, env: { CHARTROOM_DATABASE_URL: url } });
  await expect(onAnother()).rejects.toThrow("is not the one that the data in");
  copyFileSync(keyFile, join(another, "key.json"));
  const other = await onAnother();
  server = { ...(await start()), token: server.token };
  for (const each of [server, other])
    expect((await post(each, "ProjectService/ListProjects", {}, server.token)).status).toBe(200);
  await other.stop();
  expect(await printed("audit verify")).toContain("every chain holds");
});

test("organization remove", async () => {
  await server.stop();
  expect(await printed("organization remove Second --yes")).toMatch(/^removing .*Second \(\S+\) is removed/s);
  expect(await printed("organization list")).not.toContain("Second");
  expect(await printed("audit verify")).toMatch(/removed at .*every chain holds/s);
});

test("backup, restore to another database, and move to a folder, with what is stored", async () => {
  const projects = async (over: TestServer) =>
    (await succeeded(post(over, "ProjectService/ListProjects", {}, server.token))).projects;
  server = { ...(await start()), token: server.token };
  const before = await projects(server);
  expect(before).toHaveLength(1);
  const file = join(dataDir, "last.backup");
  await printed("backup", file);
  await server.stop();
  const copy = await ownDatabase();
  const restored = await run("restore", file, "--database-url", copy);
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  const key = ["--key-file", join(dataDir, "key.json")];
  const over = await startServer({ dataDir, env: { CHARTROOM_DATABASE_URL: copy } });
  expect(await projects(over)).toEqual(before);
  await over.stop();
  const folder = join(temporaryFolder(), "moved");
  expect(await printed("move", "--from", copy, "--to", folder, ...key)).toContain("every chain holds");
  const moved = await startServer({ dataDir: folder, args: key });
  expect(await projects(moved)).toEqual(before);
  await moved.stop();
});

testWithOwnDisk("backup and move blame the file whose disk is full, and leave nothing of it", async () => {
  // More than the engine holds back in memory until the copy ends.
  await onCluster(url, "update project set technical_description = repeat('x', 30000000)");
  const folder = temporaryFolder();
  const [file, moved] = [join(folder, "full.backup"), join(folder, "chartroom.db")];
  const key = ["--key-file", join(dataDir, "key.json")];
  const script = `"$@"; echo $?; find ${folder} -name 'full*' -o -name 'chartroom.db*'`;
  for (const [blamed, ...args] of [
    [file, "backup", file, "--database-url", url],
    [moved, "move", "--from", url, "--to", folder, ...key],
  ] as const) {
    // There is no room for the empty tables, or for some of the rows.
    for (const size of ["128k", "8m"]) {
      const [program = "", ...rest] = onOwnDisk(folder, `size=${size}`);
      const all = [...rest, "sh", "-c", script, "sh", process.execPath, "bin/chartroom.js", ...args];
      const { stderr, stdout } = spawnSync(program, all, { encoding: "utf8" });
      expect([size, stderr.replace(/^copying .*\n/gm, ""), stdout.replace(/^copying .*\n/gm, "")]).toEqual([
        size,
        `chartroom: ${blamed} cannot be written: the disk is full: make room there, or use another disk\n`,
        "1\n",
      ]);
    }
  }
});
