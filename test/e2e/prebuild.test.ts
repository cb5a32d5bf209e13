import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDuePrebuilds } from "../../src/jobs/prebuilds.ts";
import { removeDeletedProjects } from "../../src/jobs/project-removal.ts";
import type { Store } from "../../src/store/store.ts";
import { atTime } from "../harness/at-time.ts";
import { post, reasonOf, repository } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { expireLease, LONG_LEASES } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

const REMOTE = "https://git.example.org/team/ship.git";
const DAY_MS = 24 * 3_600_000;

let server: ReachableServer;
let runner: FakeRunner;
let days = 0;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
});
afterAll(stopAll);

const call = (operation: string, body: object) => succeeded(post(server, operation, body));

/** Does something while the server runs, as if some days had passed. */
function later<T>(act: (store: Store, now: number) => Promise<T>): Promise<T> {
  days += 1;
  const now = Date.now() + days * DAY_MS;
  return atTime(server, now, (store) => act(store, now));
}

/** A project with daily prebuilds of the runner's class; its id. */
async function prebuilt(): Promise<string> {
  const { project } = await call("ProjectService/CreateProject", {
    initializer: repository(REMOTE),
    prebuildConfiguration: {
      enabled: true,
      environmentClassIds: [runner.environmentClassId],
      trigger: { dailySchedule: { hourUtc: 3 } },
    },
  });
  return project.id;
}

/** The next day comes, and the runner takes the prebuild that is due. */
async function nextPrebuild() {
  await later(createDuePrebuilds);
  return runner.leaseOne();
}

/** The runner takes the removal of a workspace, and confirms it. */
async function confirmRemoval() {
  const removal = await runner.leaseOne();
  expect(removal.prebuildRemoval).toBeDefined();
  await succeeded(runner.finish(removal));
}

const letGo = (projectId: string) => call("ProjectService/DeleteProject", { projectId });

describe("a prebuild", () => {
  test("goes from its day to the environments that start from it, and to its removal", async () => {
    const projectId = await prebuilt();
    const work = await nextPrebuild();
    const { initializer } = (await call("ProjectService/GetProject", { projectId })).project;
    expect(work).toMatchObject({
      attempt: 1,
      environmentToken: "",
      policies: { agentPolicy: expect.anything() },
      prebuild: {
        projectId,
        environmentClassId: runner.environmentClassId,
        initializer,
        timeout: "3600s",
      },
    });
    const { prebuildId } = work.prebuild;
    await succeeded(runner.finish(work));

    const { environment } = await call("EnvironmentService/CreateEnvironmentFromProject", {
      projectId,
      spec: {
        desiredPhase: "ENVIRONMENT_PHASE_RUNNING",
        machine: { class: runner.environmentClassId },
      },
    });
    const started = await runner.leaseOne();
    expect(started.environment).toMatchObject({ environment: { id: environment.id }, prebuildId });
    await succeeded(runner.finish(started));

    const next = await nextPrebuild();
    await succeeded(runner.finish(next));
    const removal = await runner.leaseOne();
    expect(removal.prebuildRemoval).toEqual({ prebuildId });
    await succeeded(runner.finish(removal));

    await call("EnvironmentService/DeleteEnvironment", { environmentId: environment.id });
    await letGo(projectId);
    await succeeded(runner.finish(await runner.leaseOne()));
    const last = await runner.leaseOne();
    expect(last.prebuildRemoval).toEqual({ prebuildId: next.prebuild.prebuildId });
    await succeeded(runner.finish(last));
    await later(removeDeletedProjects);
    const gone = await post(server, "ProjectService/GetProject", { projectId });
    expect(gone.status).toBe(404);
  });

  test("has no steps, no logs and no environment to report", async () => {
    const projectId = await prebuilt();
    const work = await nextPrebuild();
    const reports = {
      environment: { phase: "ENVIRONMENT_PHASE_RUNNING" },
      steps: [{ stepIndex: 0, state: "STATE_RUNNING" }],
      logs: [{ stepIndex: 0, offset: "0", data: "aGVsbG8=" }],
    };
    for (const [field, value] of Object.entries(reports)) {
      const answer = await runner.report(work, { [field]: value });
      expect([field, answer.status, reasonOf(answer)]).toEqual([field, 400, "VALUE_UNUSABLE"]);
    }
    expect((await succeeded(runner.report(work))).stop).toBe(false);
    await succeeded(runner.finish(work, "OUTCOME_FAILED", { failure: { message: "no space left" } }));
    await confirmRemoval();
    await letGo(projectId);
    const { entries } = await call("EventService/ListAuditLogs", {
      filter: { subjectTypes: ["RESOURCE_TYPE_PREBUILD"], subjectIds: [work.prebuild.prebuildId] },
    });
    expect(JSON.stringify(entries)).toContain("no space left");
  });

  test("gets the credential of its executor for the host of its source, and for no other", async () => {
    const projectId = await prebuilt();
    const { runnerId } = runner;
    const { subject } = await call("IdentityService/GetAuthenticatedIdentity", {});
    await call("RunnerConfigurationService/CreateHostAuthenticationToken", {
      runnerId,
      host: "git.example.org",
      token: "a secret of a test",
      subject,
    });
    const work = await nextPrebuild();
    expect((await succeeded(runner.credential(work, "git.example.org"))).token).toBe("a secret of a test");
    expect((await runner.credential(work, "other.example.org")).status).toBe(400);
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    await confirmRemoval();
    await letGo(projectId);
  });

  test("runs as no other person than who asked for it", async () => {
    const { subject, organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
    const member = await addMember(server, { organizationId, email: "ann@example.org" });
    const as = (operation: string, body: object) => post(server, operation, body, member.token);
    const initializer = repository(REMOTE);
    const refused = await as("ProjectService/CreateProject", {
      initializer,
      prebuildConfiguration: { executor: subject },
    });
    expect([refused.status, refused.body.message]).toEqual([
      400,
      expect.stringContaining("prebuilds run as"),
    ]);
    const { project } = await succeeded(
      as("ProjectService/CreateProject", { initializer, prebuildConfiguration: {} }),
    );
    await call("ProjectService/UpdateProject", {
      projectId: project.id,
      prebuildConfiguration: { executor: subject },
    });
    const other = await as("ProjectService/UpdateProject", {
      projectId: project.id,
      initializer: repository("https://git.example.org/team/secrets.git"),
    });
    expect([other.status, reasonOf(other)]).toEqual([403, "PERMISSION_DENIED"]);
  });

  test("is another runner's once its lease has run out, and the late report is refused", async () => {
    const projectId = await prebuilt();
    const first = await nextPrebuild();
    await expireLease(server, first);
    const second = await runner.leaseOne();
    expect(second.prebuild.prebuildId).toBe(first.prebuild.prebuildId);
    expect([second.attempt, second.fence]).toEqual([2, "2"]);
    const late = await runner.finish(first);
    expect([late.status, reasonOf(late)]).toEqual([409, "LEASE_LOST"]);
    await letGo(projectId);
    expect((await succeeded(runner.renew(second))).stop).toBe(true);
    await succeeded(runner.finish(second, "OUTCOME_STOPPED"));
    await confirmRemoval();
    await later(removeDeletedProjects);
    expect((await post(server, "ProjectService/GetProject", { projectId })).status).toBe(404);
  });
});
