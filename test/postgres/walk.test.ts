import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { type RoundRobin, startRoundRobin } from "../harness/round-robin.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

/*
 * The way through docs/postgres.md, with the engine that npm installs and 2,000 projects. It was walked by hand with
 * Debian's PostgreSQL 15, Caddy and 10,000 projects.
 */
const ACTIONS = 100;
/** Actions that get through before the server is killed. */
const BEFORE = 40;
const PROJECTS = 2_000;
const PROJECTS_PER_CALL = 100;

let cluster: PostgresCluster;
let proxy: RoundRobin;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  proxy = await startRoundRobin();
});
afterAll(async () => {
  await stopRunners();
  await proxy?.stop();
  await stopAll();
  await cluster?.stop();
});

/** Runs a command that succeeds. @returns what it prints */
async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** Makes a repository that has as many addresses. */
function repositories(count: number): string[] {
  const parent = temporaryFolder();
  const { folder } = bareRepository(parent, { "hello.txt": "Hello\n" });
  return Array.from({ length: count }, (_, index) => {
    const link = join(parent, `r${index}.git`);
    symlinkSync(folder, link);
    return pathToFileURL(link).href;
  });
}

test("three servers and two runners carry out a hundred actions while one of the servers is killed", async () => {
  const url = await emptyDatabase(cluster);
  // The first one runs the jobs.
  const [first, ...others] = (await startServers(url, 3)) as [TestServer, TestServer, TestServer];
  proxy.forwardTo([first, ...others]);
  const runners = [];
  for (let count = 0; count < 2; count++)
    runners.push(await startRegisteredRunner({ ...first, url: proxy.url }));
  const urls = repositories(ACTIONS);
  const folder = temporaryFolder();
  mkdirSync(join(folder, "begun"));
  // All others wait until the server has been killed.
  const command = [
    "echo Good night >> hello.txt",
    `mktemp -p ${folder}/begun`,
    `until [ $(ls ${folder}/begun | wc -l) -le ${BEFORE} ] || [ -e ${folder}/killed ]; do sleep 0.1; done`,
  ].join(" && ");
  const output = { key: "lines", title: "Lines", integer: {}, command: "wc -l < hello.txt" };
  const execution = await startExecution(others[0], {
    actions: ACTIONS,
    maxParallel: 25,
    repository: (index) => urls[index] as string,
    steps: [task(command), { report: { outputs: [output] } }],
  });
  const phases = async () => (await execution.actions()).map(({ status }) => status.phase);
  const isDone = (phase: string) => phase.endsWith("_DONE");
  await until(
    () => readdirSync(join(folder, "begun")).length,
    (begun) => begun > BEFORE,
  );
  expect((await phases()).filter(isDone).length).toBeGreaterThan(0);
  await first.kill();
  writeFileSync(join(folder, "killed"), "");
  // As a proxy that asks for readiness does.
  proxy.forwardTo(others);
  await until(
    async () => (await execution.execution()).status.phase,
    (phase) => phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED",
  );
  const actions = await execution.actions();
  expect(actions).toHaveLength(ACTIONS);
  expect(actions.filter(({ status }) => !isDone(status.phase))).toEqual([]);
  const { outputs } = await execution.call("ListWorkflowExecutionOutputs", {
    filter: { workflowExecutionIds: [execution.executionId] },
    pagination: { pageSize: ACTIONS },
  });
  expect(outputs).toHaveLength(ACTIONS);
  for (const runner of runners) expect(await runner.stop()).toBe(0);
  expect(
    await run("audit", "verify", "--database-url", url, "--key-file", join(first.dataDir, "key.json")),
  ).toContain("every chain holds");
});

test("a folder with thousands of projects moves into a database and back, and its record holds in all three places", async () => {
  const url = await emptyDatabase(cluster);
  const server = await startServer();
  const { dataDir, token } = server;
  for (let made = 0; made < PROJECTS; made += PROJECTS_PER_CALL) {
    const projects = Array.from({ length: PROJECTS_PER_CALL }, (_, index) => ({
      name: `Project ${made + index}`,
      initializer: { specs: [{ git: { remoteUri: `https://git.example.org/team/p${made + index}.git` } }] },
    }));
    await succeeded(post(server, "ProjectService/CreateProjects", { projects }));
  }
  await server.stop();
  const key = ["--key-file", join(dataDir, "key.json")];
  const back = join(temporaryFolder(), "back");
  expect(await run("move", "--from", dataDir, "--to", url, ...key)).toContain("every chain holds");
  expect(await run("move", "--from", url, "--to", back, ...key)).toContain("every chain holds");
  const reports = [
    await run("audit", "verify", "--data-dir", dataDir, ...key),
    await run("audit", "verify", "--database-url", url, ...key),
    await run("audit", "verify", "--data-dir", back, ...key),
  ];
  expect(reports[0]).toMatch(/organization \S+: (\d+) rows, \1 hold;/);
  expect(reports[0]).toContain("every chain holds");
  expect(new Set(reports).size).toBe(1);
  const moved = await startServer({
    dataDir: temporaryFolder(),
    args: key,
    env: { CHARTROOM_DATABASE_URL: url },
  });
  const { projects } = await succeeded(
    post(moved, "ProjectService/ListProjects", { filter: { search: `project ${PROJECTS - 1}` } }, token),
  );
  expect(projects).toHaveLength(1);
  await moved.stop();
});
