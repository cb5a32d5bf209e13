import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { type Answer, reasonOf, repository } from "../harness/call.ts";
import { decisionOf, type OrganizationWithPolicies, organizationWithPolicies } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let own: OrganizationWithPolicies;
let made = 0;
beforeAll(async () => {
  server = await startHostedServer();
});
beforeEach(async () => {
  made += 1;
  own = await organizationWithPolicies(server, `enforcement-${made}`);
});
afterAll(stopAll);

const initializer = repository("https://git.example.org/team/hello.git");
const STOPPED = { desiredPhase: "ENVIRONMENT_PHASE_STOPPED" };

const createEnvironment = (token?: string, spec: object = {}) =>
  own.call("EnvironmentService/CreateEnvironment", { spec: { content: { initializer }, ...spec } }, token);
const createProject = (token?: string, body: object = {}) =>
  own.call("ProjectService/CreateProject", { initializer, ...body }, token);
const fromProject = (projectId: string, token?: string, spec?: object) =>
  own.call("EnvironmentService/CreateEnvironmentFromProject", { projectId, ...(spec && { spec }) }, token);
const start = (environmentId: string, token?: string) =>
  own.call("EnvironmentService/StartEnvironment", { environmentId }, token);
const stop = (environmentId: string, token?: string) =>
  own.call("EnvironmentService/StopEnvironment", { environmentId }, token);

/** What was made, or an error that says what was answered. */
function ok(answer: Answer): Answer["body"] {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

/** Holds a denial against the whole decision that it should carry. */
function expectDenied(
  answer: Answer,
  decision: { fieldPath: string; valueInForce: string; valueAsked?: string; allowed: string },
  setBy: "administrator" | "nobody" = "administrator",
): void {
  expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
    400,
    "failed_precondition",
    "POLICY_DENIED",
  ]);
  const { fieldPath, allowed } = decision;
  expect(answer.body.message).toBe(
    `the organization's policy ${fieldPath} forbids this; it allows ${allowed}`,
  );
  expect(answer.body.details[0].debug.metadata).toEqual({
    policy: "OrganizationPolicies",
    field_path: fieldPath,
  });
  const shown = decisionOf(answer);
  const origin = { setBy: { id: own.administrator.userId, principal: "PRINCIPAL_USER" }, setAt: shown.setAt };
  expect(shown).toEqual({
    policy: "OrganizationPolicies",
    valueAsked: "",
    ...decision,
    ...(setBy === "administrator" && origin),
  });
  if (setBy === "administrator") expect(Math.abs(Date.now() - Date.parse(shown.setAt))).toBeLessThan(60_000);
}

describe("membersCreateProjects", () => {
  const decision = {
    fieldPath: "membersCreateProjects",
    valueInForce: "false",
    allowed: "administrators alone to create projects",
  };

  test("lets members create projects until it is false, and then administrators alone", async () => {
    const { token } = own.member;
    const { project } = ok(await createProject(token));
    const { environment } = ok(await fromProject(project.id, token));
    await own.set({ membersCreateProjects: false });
    expectDenied(await createProject(token), decision);
    const template = { environmentId: environment.id };
    expectDenied(await own.call("ProjectService/CreateProjectFromEnvironment", template, token), decision);
    expect((await createProject()).status).toBe(200);
    expect((await own.call("ProjectService/CreateProjectFromEnvironment", template)).status).toBe(200);
    await own.set({ updateMask: "membersCreateProjects" });
    expect((await createProject(token)).status).toBe(200);
  });

  test("fails the elements of a batch, not the request", async () => {
    await own.set({ membersCreateProjects: false });
    const batch = { projects: [{ initializer }, { initializer }] };
    const { createdProjects, failedProjects } = ok(
      await own.call("ProjectService/CreateProjects", batch, own.member.token),
    );
    expect(createdProjects).toEqual([]);
    expect(failedProjects).toEqual(
      [0, 1].map((index) => ({
        index,
        name: "",
        error: `the organization's policy membersCreateProjects forbids this; it allows ${decision.allowed}`,
      })),
    );
    expect(ok(await own.call("ProjectService/CreateProjects", batch)).createdProjects).toHaveLength(2);
  });
});

describe("membersRequireProjects", () => {
  test("keeps members, and no administrator, from environments without a project", async () => {
    const { project } = ok(await createProject());
    expect((await createEnvironment(own.member.token)).status).toBe(200);
    await own.set({ membersRequireProjects: true });
    expectDenied(await createEnvironment(own.member.token), {
      fieldPath: "membersRequireProjects",
      valueInForce: "true",
      allowed: "members to create environments from projects only",
    });
    expect((await fromProject(project.id, own.member.token)).status).toBe(200);
    expect((await createEnvironment()).status).toBe(200);
  });
});

describe("disableFromScratch", () => {
  const blank = { content: {} };

  test("keeps members, and no administrator, from environments without an initializer", async () => {
    const { project } = ok(await createProject(undefined, { name: "blank", initializer: { specs: [] } }));
    expect((await createEnvironment(own.member.token, blank)).status).toBe(200);
    await own.set({ disableFromScratch: true });
    const decision = {
      fieldPath: "disableFromScratch",
      valueInForce: "true",
      allowed: "members to create environments with a git or URL initializer only",
    };
    expectDenied(await createEnvironment(own.member.token, blank), decision);
    const empty = { content: { initializer: { specs: [] } } };
    expectDenied(await createEnvironment(own.member.token, empty), decision);
    expectDenied(await fromProject(project.id, own.member.token), decision);
    expect((await createEnvironment(undefined, blank)).status).toBe(200);
    expect((await createEnvironment(own.member.token)).status).toBe(200);
    const url = {
      content: { initializer: { specs: [{ contextUrl: { url: "https://git.example.org/a/b" } }] } },
    };
    expect((await createEnvironment(own.member.token, url)).status).toBe(200);
    expect((await fromProject(project.id, own.member.token, { content: { initializer } })).status).toBe(200);
  });
});

describe("maximumEnvironmentTimeout", () => {
  const timeout = (disconnected: string) => ({ timeout: { disconnected } });
  const denial = (valueAsked: string) => ({
    fieldPath: "maximumEnvironmentTimeout",
    valueInForce: '"3600s"',
    valueAsked: JSON.stringify(valueAsked),
    allowed: "a timeout of at most 3600s",
  });

  test.each(["member", "administrator"] as const)("bounds the timeout that a %s asks for", async (who) => {
    const { token } = own[who];
    expect((await createEnvironment(token, timeout("0s"))).status).toBe(200);
    await own.set({ maximumEnvironmentTimeout: "3600s" });
    expectDenied(await createEnvironment(token, timeout("3601s")), denial("3601s"));
    expectDenied(await createEnvironment(token, timeout("3600.000000001s")), denial("3600.000000001s"));
    expectDenied(await createEnvironment(token, timeout("0s")), denial("0s"));
    const exact = ok(await createEnvironment(token, timeout("3600s")));
    expect(exact.environment.spec.timeout).toEqual({ disconnected: "3600s" });
    const shorter = ok(await createEnvironment(token, timeout("1800s")));
    expect(shorter.environment.spec.timeout).toEqual({ disconnected: "1800s" });
    const update = (disconnected: string) => {
      const change = { environmentId: shorter.environment.id, spec: timeout(disconnected) };
      return own.call("EnvironmentService/UpdateEnvironment", change, token);
    };
    expectDenied(await update("3601s"), denial("3601s"));
    expectDenied(await update("0s"), denial("0s"));
    ok(await update("3600s"));
  });

  test("is what an environment gets that asks for none, also from a project", async () => {
    const { project } = ok(await createProject());
    expect(ok(await createEnvironment()).environment.spec.timeout).toBeUndefined();
    await own.set({ maximumEnvironmentTimeout: "3600s" });
    expect(ok(await createEnvironment()).environment.spec.timeout).toEqual({ disconnected: "3600s" });
    const unset = ok(await createEnvironment(undefined, { timeout: {} }));
    expect(unset.environment.spec.timeout).toEqual({ disconnected: "3600s" });
    expect(ok(await fromProject(project.id)).environment.spec.timeout).toEqual({ disconnected: "3600s" });
    expectDenied(await fromProject(project.id, undefined, timeout("7200s")), denial("7200s"));
  });

  test("limits nothing at 0 s", async () => {
    await own.set({ maximumEnvironmentTimeout: "0s" });
    expect(ok(await createEnvironment()).environment.spec.timeout).toBeUndefined();
    expect((await createEnvironment(undefined, timeout("315360000s"))).status).toBe(200);
  });
});

describe("maximumEnvironmentLifetime", () => {
  test("puts the end of its lifetime on every new environment, and on none before", async () => {
    expect(ok(await createEnvironment()).environment.metadata.lockdownAt).toBeUndefined();
    await own.set({ maximumEnvironmentLifetime: "86400s" });
    const { metadata } = ok(await createEnvironment(own.member.token)).environment;
    expect(Date.parse(metadata.lockdownAt) - Date.parse(metadata.createdAt)).toBe(86_400_000);
    await own.set({ maximumEnvironmentLifetime: "0s" });
    expect(ok(await createEnvironment()).environment.metadata.lockdownAt).toBeUndefined();
  });

  test("lets an environment past its end start until it is strict", async () => {
    // So short that the end is the instant of the creation.
    await own.set({ maximumEnvironmentLifetime: "0.000001s" });
    const { id } = ok(await createEnvironment(own.member.token, STOPPED)).environment;
    expect((await start(id, own.member.token)).status).toBe(200);
    await own.set({ maximumEnvironmentLifetimeStrict: true });
    const decision = {
      fieldPath: "maximumEnvironmentLifetimeStrict",
      valueInForce: "true",
      allowed: "starts until the lockdownAt of an environment only",
    };
    expectDenied(await start(id, own.member.token), decision);
    expectDenied(await start(id), decision);
    await own.set({ maximumEnvironmentLifetime: "86400s" });
    const later = ok(await createEnvironment(undefined, STOPPED)).environment;
    expect((await start(later.id)).status).toBe(200);
    expectDenied(await start(id), decision);
  });
});

describe("allowLocalRunners", () => {
  const decision = {
    fieldPath: "allowLocalRunners",
    valueInForce: "false",
    valueAsked: "true",
    allowed: "environments on runners that are not local",
  };

  test("keeps new environments off local runners, by a project's entry and by a class", async () => {
    const { project } = ok(await createProject());
    const local = { projectId: project.id, projectEnvironmentClasses: [{ localRunner: true }] };
    ok(await own.call("ProjectService/UpdateProjectEnvironmentClasses", local));
    const classOf = async (kind: string) => {
      const { runner } = ok(await own.call("RunnerService/CreateRunner", { name: kind, kind }));
      const body = { runnerId: runner.runnerId, displayName: kind, description: "a machine" };
      return ok(await own.call("RunnerConfigurationService/CreateEnvironmentClass", body)).id;
    };
    const onLocal = { machine: { class: await classOf("RUNNER_KIND_LOCAL") } };
    const onRemote = { machine: { class: await classOf("RUNNER_KIND_REMOTE") } };
    expect((await fromProject(project.id, own.member.token)).status).toBe(200);
    expect((await createEnvironment(own.member.token, onLocal)).status).toBe(200);
    await own.set({ allowLocalRunners: false });
    for (const { token } of [own.member, own.administrator]) {
      expectDenied(await fromProject(project.id, token), decision);
      expectDenied(await createEnvironment(token, onLocal), decision);
      expect((await createEnvironment(token, onRemote)).status).toBe(200);
      expect((await createEnvironment(token)).status).toBe(200);
      expect((await fromProject(project.id, token, onRemote)).status).toBe(200);
    }
  });
});

describe("editors", () => {
  const recommend = async (editors: object, token = own.administrator.token) => {
    const { project } = ok(await createProject(token));
    return own.call(
      "ProjectService/UpdateProject",
      { projectId: project.id, recommendedEditors: { editors } },
      token,
    );
  };

  test.each(["member", "administrator"] as const)(
    "that are allowed are all that a %s can recommend",
    async (who) => {
      const { token } = own[who];
      expect((await recommend({ emacs: {} }, token)).status).toBe(200);
      await own.set({ allowedEditorIds: ["code", "vim"] });
      expectDenied(await recommend({ vim: {}, emacs: {} }, token), {
        fieldPath: "allowedEditorIds",
        valueInForce: '["code","vim"]',
        valueAsked: '["vim","emacs"]',
        allowed: "only the editors code, vim",
      });
      expect((await recommend({ vim: {}, code: { versions: ["1.99"] } }, token)).status).toBe(200);
      expect((await recommend({}, token)).status).toBe(200);
    },
  );

  test("keep to the versions that are allowed", async () => {
    const restrictions = { code: { allowedVersions: ["2025", "2026"] }, vim: {} };
    await own.set({ editorVersionRestrictions: restrictions });
    const denial = (valueAsked: object, allowed: string) => ({
      fieldPath: "editorVersionRestrictions",
      valueInForce: JSON.stringify({ code: restrictions.code, vim: { allowedVersions: [] } }),
      valueAsked: JSON.stringify(valueAsked),
      allowed,
    });
    expect((await recommend({ code: { versions: ["2025", "2026.1"] } })).status).toBe(200);
    expect((await recommend({ code: {}, vim: {}, emacs: {} })).status).toBe(200);
    expectDenied(
      await recommend({ code: { versions: ["2026", "2024"] } }),
      denial({ code: { allowedVersions: ["2026", "2024"] } }, "only the versions 2025, 2026 of code"),
    );
    expectDenied(
      await recommend({ code: { versions: ["20261"] } }),
      denial({ code: { allowedVersions: ["20261"] } }, "only the versions 2025, 2026 of code"),
    );
    for (const editor of ["vim", "emacs", "toString"]) {
      expectDenied(
        await recommend({ [editor]: { versions: ["9"] } }),
        denial(
          { [editor]: { allowedVersions: ["9"] } },
          `the latest version of ${editor} alone, which is recommended by naming no version`,
        ),
      );
    }
    await own.set({ editorVersionRestrictions: {} });
    expect((await recommend({ emacs: { versions: ["9"] } })).status).toBe(200);
  });

  test("fail their element of a batch alone", async () => {
    const { project } = ok(await createProject());
    await own.set({ allowedEditorIds: ["code"] });
    const element = (editor: string) => ({
      projectId: project.id,
      recommendedEditors: { editors: { [editor]: {} } },
    });
    const projects = [element("vim"), element("code")];
    const { updatedProjects, failedProjects } = ok(
      await own.call("ProjectService/UpdateProjects", { projects }),
    );
    expect(updatedProjects).toHaveLength(1);
    expect(failedProjects).toEqual([
      {
        index: 0,
        projectId: project.id,
        error: "the organization's policy allowedEditorIds forbids this; it allows only the editors code",
      },
    ]);
  });
});

describe("port admission", () => {
  const level = (name: string) => ({ admission: `ADMISSION_LEVEL_${name}` });
  const opened = async (token: string, name: string) => createEnvironment(token, level(name));
  const capped = (valueInForce: string, valueAsked: string) => ({
    fieldPath: "maxPortAdmissionLevel",
    valueInForce: JSON.stringify(`ADMISSION_LEVEL_${valueInForce}`),
    valueAsked: JSON.stringify(`ADMISSION_LEVEL_${valueAsked}`),
    allowed: `at most ADMISSION_LEVEL_${valueInForce}`,
  });

  test.each(["member", "administrator"] as const)("is no wider than the cap for a %s", async (who) => {
    const { token } = own[who];
    const closed = ["UNSPECIFIED", "OWNER_ONLY", "CREATOR_ONLY"];
    for (const each of [...closed, "ORGANIZATION", "EVERYONE"]) {
      expect((await opened(token, each)).status).toBe(200);
    }
    await own.set({ maxPortAdmissionLevel: "ADMISSION_LEVEL_ORGANIZATION" });
    for (const each of [...closed, "ORGANIZATION"]) expect((await opened(token, each)).status).toBe(200);
    expectDenied(await opened(token, "EVERYONE"), capped("ORGANIZATION", "EVERYONE"));
    await own.set({ maxPortAdmissionLevel: "ADMISSION_LEVEL_OWNER_ONLY" });
    for (const each of closed) expect((await opened(token, each)).status).toBe(200);
    expectDenied(await opened(token, "ORGANIZATION"), capped("CREATOR_ONLY", "ORGANIZATION"));
    await own.set({ maxPortAdmissionLevel: "ADMISSION_LEVEL_EVERYONE" });
    expect((await opened(token, "EVERYONE")).status).toBe(200);
  });

  test("is the creator's own where sharing is disabled, whatever the cap", async () => {
    await own.set({ portSharingDisabled: true, maxPortAdmissionLevel: "ADMISSION_LEVEL_EVERYONE" });
    const { token } = own.administrator;
    for (const each of ["ORGANIZATION", "EVERYONE"]) {
      expectDenied(await opened(token, each), {
        fieldPath: "portSharingDisabled",
        valueInForce: "true",
        valueAsked: JSON.stringify(`ADMISSION_LEVEL_${each}`),
        allowed: "only ADMISSION_LEVEL_CREATOR_ONLY",
      });
    }
    expect((await opened(token, "CREATOR_ONLY")).status).toBe(200);
  });
});

describe("maximumEnvironmentsPerUser", () => {
  const denial = (most: number) => ({
    fieldPath: "maximumEnvironmentsPerUser",
    valueInForce: `"${most}"`,
    valueAsked: `"${most + 1}"`,
    allowed: `at most ${most} environments of one user`,
  });

  test.each(["member", "administrator"] as const)("counts running and stopped ones of a %s", async (who) => {
    const { token } = own[who];
    const { project } = ok(await createProject());
    await own.set({ maximumEnvironmentsPerUser: "2" });
    const first = ok(await createEnvironment(token, STOPPED)).environment;
    ok(await fromProject(project.id, token));
    expectDenied(await createEnvironment(token, STOPPED), denial(2));
    expectDenied(await fromProject(project.id, token), denial(2));
    const other = who === "member" ? own.administrator : own.member;
    expect((await createEnvironment(other.token)).status).toBe(200);
    ok(await own.call("EnvironmentService/DeleteEnvironment", { environmentId: first.id }, token));
    expect((await createEnvironment(token)).status).toBe(200);
    await own.set({ maximumEnvironmentsPerUser: "0" });
    expect((await createEnvironment(token)).status).toBe(200);
  });

  test("leaves what exists alone when it gets smaller, and starts of it", async () => {
    const { id } = ok(await createEnvironment(undefined, STOPPED)).environment;
    ok(await createEnvironment());
    await own.set({ maximumEnvironmentsPerUser: "1" });
    expect((await start(id)).status).toBe(200);
    expect(ok(await own.call("EnvironmentService/ListEnvironments", {})).environments).toHaveLength(2);
  });

  test("gives one slot to one of 100 that ask at the same time", async () => {
    await own.set({ maximumEnvironmentsPerUser: "1" });
    const answers = await Promise.all(Array.from({ length: 100 }, () => createEnvironment(own.member.token)));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(99);
    for (const each of refused) expectDenied(each, denial(1));
    expect(ok(await own.call("EnvironmentService/ListEnvironments", {})).environments).toHaveLength(1);
  });
});

describe("maximumRunningEnvironmentsPerUser", () => {
  const denial = (most: number) => ({
    fieldPath: "maximumRunningEnvironmentsPerUser",
    valueInForce: `"${most}"`,
    valueAsked: `"${most + 1}"`,
    allowed: `at most ${most} running environments of one user`,
  });

  test.each(["member", "administrator"] as const)(
    "counts what a %s has running, at creation and start",
    async (who) => {
      const { token } = own[who];
      await own.set({ maximumRunningEnvironmentsPerUser: "1" });
      const running = ok(await createEnvironment(token)).environment;
      const resting = ok(await createEnvironment(token, STOPPED)).environment;
      expectDenied(await createEnvironment(token), denial(1));
      expectDenied(await start(resting.id, token), denial(1));
      expect((await start(running.id, token)).status).toBe(200);
      ok(await stop(running.id, token));
      expect((await start(resting.id, token)).status).toBe(200);
      expectDenied(await start(running.id, token), denial(1));
      await own.set({ maximumRunningEnvironmentsPerUser: "2" });
      expect((await start(running.id, token)).status).toBe(200);
    },
  );

  test("counts for who created the environment when an administrator starts it", async () => {
    await own.set({ maximumRunningEnvironmentsPerUser: "1" });
    ok(await createEnvironment(own.member.token));
    const { id } = ok(await createEnvironment(own.member.token, STOPPED)).environment;
    expectDenied(await start(id), denial(1));
    expect((await createEnvironment()).status).toBe(200);
  });

  test("gives one slot to one of 100 that start at the same time", async () => {
    const made = await Promise.all(
      Array.from({ length: 100 }, () => createEnvironment(own.member.token, STOPPED)),
    );
    await own.set({ maximumRunningEnvironmentsPerUser: "1" });
    const answers = await Promise.all(made.map((each) => start(ok(each).environment.id, own.member.token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const each of answers.filter(({ status }) => status !== 200)) expectDenied(each, denial(1));
  });
});

describe("a decision", () => {
  test("keeps who set a value, and when, while the same value is set again", async () => {
    await own.set({ maximumEnvironmentsPerUser: "1" });
    ok(await createEnvironment());
    const first = decisionOf(await createEnvironment());
    await own.set({ maximumEnvironmentsPerUser: "1", webBrowserDisabled: true });
    expect(decisionOf(await createEnvironment())).toEqual(first);
    await own.set({ maximumEnvironmentsPerUser: "0" });
    await own.set({ maximumEnvironmentsPerUser: "1" });
    const { setAt, ...second } = decisionOf(await createEnvironment());
    expect({ ...second, setAt: first.setAt }).toEqual(first);
    expect(Date.parse(setAt)).toBeGreaterThan(Date.parse(first.setAt));
  });

  test("reaches gRPC clients as a detail", async () => {
    await own.set({ membersRequireProjects: true });
    const client = createClient(EnvironmentService, createGrpcTransport({ baseUrl: server.url }));
    const headers = { authorization: `Bearer ${own.member.token}` };
    const error = await client.createEnvironment({}, { headers }).then(
      () => undefined,
      (thrown) => ConnectError.from(thrown),
    );
    expect(error?.code).toBe(Code.FailedPrecondition);
    expect(error?.findDetails(PolicyDecisionSchema)).toMatchObject([
      { policy: "OrganizationPolicies", fieldPath: "membersRequireProjects", valueInForce: "true" },
    ]);
  });
});
