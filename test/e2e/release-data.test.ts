import { readdirSync } from "node:fs";
import { afterAll, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { MIGRATIONS } from "../../src/store/sqlite/migrate.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { post, repository } from "../harness/call.ts";
import { doAction, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { withRawData } from "../harness/raw-data.ts";
import { answersOf, keepReleaseData, keptReleases, placeReleaseData } from "../harness/release-data.ts";
import {
  type ReachableServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

afterAll(stopAll);

type Server = Pick<ReachableServer, "url" | "token">;

/** What a later release has to answer alike, whatever it adds; and nothing that changes with the time. */
async function answers(server: Server) {
  const call = (operation: string) => succeeded(post(server, operation));
  const { projects } = await call("ProjectService/ListProjects");
  const { workflowExecutions } = await call("WorkflowService/ListWorkflowExecutions");
  const { workflowExecutionActions } = await call("WorkflowService/ListWorkflowExecutionActions");
  const { runners } = await call("RunnerService/ListRunners");
  const { secrets } = await call("SecretService/ListSecrets");
  const { groups } = await call("GroupService/ListGroups");
  return {
    projects: projects.map(({ id, metadata, initializer }: Record<string, unknown>) => ({
      id,
      metadata,
      initializer,
    })),
    workflowExecutions,
    workflowExecutionActions,
    secrets: secrets.map(({ id, name }: Record<string, unknown>) => ({ id, name })),
    groups: groups.map(({ id, name }: Record<string, unknown>) => ({ id, name })),
    runners: runners.map(({ runnerId, name }: Record<string, unknown>) => ({ runnerId, name })),
    audit: (await call("EventService/ListAuditLogs")).entries.length > 0,
  };
}

/** Returns the first migration that the data of a folder has before it; undefined without one, and over PostgreSQL. */
async function nextMigration(dataDir: string): Promise<string | undefined> {
  if (postgresUrl() !== undefined) return undefined;
  const done = await withRawData(dataDir, (raw) => raw.rows("select name from migration"));
  return MIGRATIONS[done.length]?.name;
}

const releases = keptReleases();
for (const version of releases)
  test(`the data of ${version} is opened, migrated, served and verified`, async () => {
    const dataDir = temporaryFolder();
    await placeReleaseData(version, dataDir);
    const next = await nextMigration(dataDir);
    const server = await startHostedServer({ dataDir });
    if (next !== undefined) expect(readdirSync(dataDir)).toContain(`${DATABASE_FILE}.before-${next}`);
    const of = ["--data-dir", dataDir];
    // Tokens that a release has made end; the account stays.
    const made = await runHostedCommand([
      "token",
      "create",
      "--user",
      "admin@localhost",
      "--days",
      "1",
      ...of,
    ]);
    const token = made.stdout.trim();
    expect(await answers({ ...server, token })).toMatchObject(answersOf(version) as object);
    const initializer = repository("https://git.example.org/team/after.git");
    expect((await post(server, "ProjectService/CreateProject", { initializer }, token)).status).toBe(200);
    await server.stop();
    // What was sealed can be opened, and the chains hold with what was added.
    expect((await runHostedCommand(["keys", "rotate", ...of])).stdout).toContain(
      "1 host authentication token",
    );
    const verified = await runHostedCommand(["audit", "verify", ...of]);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("every chain holds")]);
  });

test("there is data of a release", () => {
  expect(releases).not.toEqual([]);
});

/** `KEEP_RELEASE=1`: this release's own server makes the data that later ones are tested with. */
if (process.env.KEEP_RELEASE)
  test("this release leaves data", async () => {
    const dataDir = temporaryFolder();
    const server = await startHostedServer({ dataDir });
    const create = (operation: string, body: object) => succeeded(post(server, operation, body));
    const { project } = await create("ProjectService/CreateProject", {
      name: "before",
      initializer: repository("https://git.example.org/team/before.git"),
    });
    const { organizationId } = (await create("UserService/GetAuthenticatedUser", {})).user;
    await create("GroupService/CreateGroup", { organizationId, name: "before" });
    await create("SecretService/CreateSecret", {
      name: "BEFORE",
      value: "of-a-test",
      environmentVariable: true,
      scope: { projectId: project.id },
    });
    const runner = await registerRunner(server);
    await create("RunnerConfigurationService/CreateHostAuthenticationToken", {
      runnerId: runner.runnerId,
      host: "git.example.org",
      token: "of-a-test",
    });
    const { execution } = await startExecution(server, { steps: [task("one"), task("two")] });
    await doAction(runner, await runner.leaseOne());
    expect((await execution()).status.phase).toBe("WORKFLOW_EXECUTION_PHASE_COMPLETED");
    const found = await answers(server);
    await server.stop();
    keepReleaseData(packageJson.version, dataDir, found);
  });
