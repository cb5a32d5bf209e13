import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { environmentAtWork } from "../e2e/world-work.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { look } from "./axe.ts";
import { closeAll, openAs } from "./browser.ts";

let server: HostedServer;
let runner: FakeRunner;
let projectId: string;
beforeAll(async () => {
  server = await startHostedServer();
  runner = await registerRunner(server);
  const initializer = repository("https://git.example.org/team/one.git");
  ({
    project: { id: projectId },
  } = await call("ProjectService/CreateProject", { initializer }));
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

const call = (operation: string, body: unknown, token = server.token): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body, token));

/** Makes an environment of the project and brings it up, and down again where it is wanted stopped. */
async function environment(name: string, isStopped: boolean): Promise<string> {
  const spec = {
    machine: { class: runner.environmentClassId },
    content: { initializer: repository("https://git.example.org/team/one.git") },
  };
  const create = (operation: string, body: unknown, token?: string) =>
    operation === "EnvironmentService/CreateEnvironment"
      ? call("EnvironmentService/CreateEnvironmentFromProject", { projectId, name, spec })
      : call(operation, body, token);
  const environmentId = await environmentAtWork(create, runner.token, spec);
  if (!isStopped) return environmentId;
  await call("EnvironmentService/StopEnvironment", { environmentId });
  const request = { maxLeases: 1, kinds: ["WORK_KIND_ENVIRONMENT"], wait: "0s" };
  const { works } = await call("WorkService/LeaseWork", request, runner.token);
  const [{ leaseId, fence }] = works;
  await call("WorkService/FinishWork", { leaseId, fence, outcome: "OUTCOME_DONE" }, runner.token);
  return environmentId;
}

test("environments are archived once they are stopped, found by that, and taken out of the archive again", async () => {
  await environment("At work", false);
  const environmentId = await environment("At rest", true);
  await call("EnvironmentService/ArchiveEnvironment", { environmentId: await environment("At night", true) });
  const { page, origin, faults } = await openAs(server, "admin@localhost");
  await page.goto(`${origin}/projects/${projectId}`);
  const rowOf = (name: string) => page.getByRole("row", { name });
  await rowOf("At work").getByText("Running").waitFor();
  expect(await rowOf("At work").getByRole("button").count()).toBe(0);
  const archiving = "**/*EnvironmentService/ArchiveEnvironment";
  await page.route(archiving, (route) =>
    route.fulfill({
      status: 503,
      headers: { "x-request-id": "request-of-an-archive" },
      json: { code: "unavailable", message: "the database is away" },
    }),
  );
  await rowOf("At rest").getByRole("button", { name: "Archive", exact: true }).click();
  const problem = page.getByText("The database is away");
  await problem.waitFor();
  await page.unroute(archiving);
  await rowOf("At night").getByRole("button", { name: "Unarchive" }).click();
  await problem.waitFor({ state: "detached" });
  await rowOf("At rest").getByRole("button", { name: "Archive", exact: true }).click();
  await rowOf("At rest").getByText("Archived").waitFor();
  const { environment: archived } = await call("EnvironmentService/GetEnvironment", { environmentId });
  expect(archived.metadata.archivedAt).toBeDefined();
  await look(page);

  await page.getByLabel("Which environments").selectOption("Archived");
  await rowOf("At work").waitFor({ state: "detached" });
  expect(new URL(page.url()).search).toContain("archived=yes");
  await page.reload();
  await rowOf("At rest").getByRole("button", { name: "Unarchive" }).click();
  await page.getByText("No environment of this project is archived.").waitFor();
  await page.getByLabel("Which environments").selectOption("Not archived");
  await rowOf("At rest").getByRole("button", { name: "Archive", exact: true }).waitFor();
  await rowOf("At work").waitFor();
  expect(faults).toEqual([]);
});

test("where none is outside of the archive, the list says no more than that", async () => {
  const initializer = repository("https://git.example.org/team/two.git");
  const { project } = await call("ProjectService/CreateProject", { initializer });
  const { page, origin } = await openAs(server, "admin@localhost");
  await page.goto(`${origin}/projects/${project.id}?archived=no`);
  await page.getByText("This project has no unarchived environment.").waitFor();
});

test("who did not make them and is no administrator sees them without the way to archive them", async () => {
  const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
  await addMember(server, { organizationId, email: "ada@example.org" });
  const { page, origin } = await openAs(server, "ada@example.org");
  await page.goto(`${origin}/projects/${projectId}`);
  await page.getByRole("row", { name: "At rest" }).getByText("Stopped").waitFor();
  await page.locator(":root:not(:has(.skeleton))").waitFor({ state: "attached" });
  expect(await page.getByRole("button", { name: "Archive", exact: true }).count()).toBe(0);
});
