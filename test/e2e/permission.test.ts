import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Role } from "../../src/domain/identity/caller.ts";
import { PERMISSIONS } from "../../src/domain/identity/permissions.ts";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { insertEnvironmentToken, insertRunnerToken } from "../harness/machine-token.ts";
import { addMember, withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { everyOperation } from "./every-operation.ts";
import { makeWorld, nowhere, type World } from "./world.ts";

type Body = Answer["body"];

const ROLES: readonly Role[] = [
  "administrator",
  "member",
  "service_account",
  "runner",
  "environment",
  "exchange",
];
const DENIED = [403, "permission_denied", "PERMISSION_DENIED"];

let server: ReachableServer;
let world: World;
/** A token of each role; the runner and the environment are those of the world. */
let tokens: Record<Role, string>;
/** The environment that was created from the world's project, and a token of it. */
let fromProject: { id: string; token: string };
beforeAll(async () => {
  server = await startHostedServer();
  world = await makeWorld(server);
  const { organization: organizationId } = world;
  const made = await post(server, "EnvironmentService/CreateEnvironmentFromProject", {
    projectId: world.project,
  });
  const { id } = made.body.environment;
  await withServerData(server, async (store, keys) => {
    const environment = (environmentId: string) =>
      insertEnvironmentToken(store, keys, { organizationId, environmentId });
    const minted = await post(server, "ServiceAccountService/CreateServiceAccountToken", {
      serviceAccountId: world.serviceAccount,
    });
    tokens = {
      administrator: server.token,
      member: (await addMember(server, { organizationId, email: "member@example.org" })).token,
      service_account: minted.body.token,
      runner: (await insertRunnerToken(store, keys, { organizationId, runnerId: world.runner })).value,
      environment: (await environment(world.environment)).value,
      exchange: await exchangeToken(),
    };
    fromProject = { id, token: (await environment(id)).value };
  });
});
afterAll(stopAll);

/** A new one each time, since the one operation that it opens takes it away. */
const exchangeToken = async (): Promise<string> =>
  (await post(server, "RunnerService/CreateRunnerToken", { runnerId: world.runner })).body.exchangeToken;
const refusal = (answer: Answer) => [answer.status, answer.body?.code, reasonOf(answer)];
const ids = (answer: Answer, list: string): string[] => answer.body[list].map((each: Body) => each.id);

/** The rows of the table, each with its own five calls. */
describe.each(everyOperation())("%s", (name, operation) => {
  // Nothing is asked for, so that nobody fails by what it asks for; a stream is asked for what it sends at once.
  const request = operation.method.methodKind === "unary" ? {} : operation.request(nowhere());

  test.each(ROLES)("lets in or refuses the role %s as the table says", async (role) => {
    const row = PERMISSIONS[name];
    const token = role === "exchange" ? await exchangeToken() : tokens[role];
    const answer = await post(server, name, request, token);
    if (row?.grants[role] !== "none") {
      // A setting or a rule of the operation itself may still say no.
      expect(answer.body?.message ?? "").not.toMatch(/^the permission \w+ is missing$/);
      expect(answer.status).not.toBe(401);
      return;
    }
    expect(refusal(answer)).toEqual(DENIED);
    expect(answer.body.details[0].debug.metadata).toEqual({ permission: row.permission });
    const unread = await post(server, name, "{ this is no JSON", token);
    if (operation.method.methodKind === "unary") expect(unread.body).toEqual(answer.body);
  });
});

describe.each(["member", "service_account"] as const)("a %s", (role) => {
  const as = (operation: string, body: object) => post(server, operation, body, tokens[role]);

  test("changes the projects that it made, and no others", async () => {
    const initializer = repository("https://git.example.org/own");
    const made = await as("ProjectService/CreateProject", { initializer });
    const projectEnvironmentClasses = [{ localRunner: true }];
    const changes = (projectId: string): [string, object][] => [
      ["ProjectService/UpdateProject", { projectId, name: "renamed" }],
      ["ProjectService/UpdateProjectEnvironmentClasses", { projectId, projectEnvironmentClasses }],
      ["ProjectService/DeleteProject", { projectId }],
    ];
    for (const [operation, body] of changes(world.project)) {
      const before = await as("ProjectService/GetProject", { projectId: world.project });
      expect([operation, ...refusal(await as(operation, body))]).toEqual([operation, ...DENIED]);
      expect((await as("ProjectService/GetProject", { projectId: world.project })).body).toEqual(before.body);
    }
    for (const [operation, body] of changes(made.body.project.id)) {
      expect([operation, (await as(operation, body)).status]).toEqual([operation, 200]);
    }
  });

  test("fails in a batch for the projects of others alone", async () => {
    const initializer = repository("https://git.example.org/own");
    const { project } = (await as("ProjectService/CreateProject", { initializer })).body;
    const { body, status } = await as("ProjectService/UpdateProjects", {
      projects: [
        { projectId: world.project, name: "taken over" },
        { projectId: project.id, name: "renamed" },
      ],
    });
    expect([status, ids({ body } as Answer, "updatedProjects")]).toEqual([200, [project.id]]);
    expect(body.failedProjects).toEqual([
      {
        index: 0,
        projectId: world.project,
        error: "the permission update_project reaches only what is the caller's own",
      },
    ]);
  });

  test("changes the environments that it made, from stop to deletion, and no others", async () => {
    const made = await as("EnvironmentService/CreateEnvironmentFromProject", { projectId: world.project });
    const theirs = async () => {
      const { body } = await as("EnvironmentService/GetEnvironment", { environmentId: world.environment });
      const { metadata, spec } = body.environment;
      return { metadata, spec };
    };
    const before = await theirs();
    for (const verb of ["Stop", "Archive", "Unarchive", "Update", "Start", "Delete"]) {
      const operation = `EnvironmentService/${verb}Environment`;
      const change = verb === "Update" ? { metadata: { name: "taken over" } } : {};
      const stranger = await as(operation, { environmentId: world.environment, ...change });
      expect([operation, ...refusal(stranger)]).toEqual([operation, ...DENIED]);
      const own = await as(operation, { environmentId: made.body.environment.id, ...change });
      expect([operation, own.status]).toEqual([operation, 200]);
    }
    expect(await theirs()).toEqual(before);
    expect(before.spec.desiredPhase).toBe("ENVIRONMENT_PHASE_RUNNING");
  });
});

test("an administrator changes what others made", async () => {
  const initializer = repository("https://git.example.org/own");
  const made = await post(server, "ProjectService/CreateProject", { initializer }, tokens.member);
  const projectId = made.body.project.id;
  expect((await post(server, "ProjectService/UpdateProject", { projectId, name: "renamed" })).status).toBe(
    200,
  );
  const used = await post(
    server,
    "EnvironmentService/CreateEnvironmentFromProject",
    { projectId },
    tokens.member,
  );
  const environmentId = used.body.environment.id;
  expect((await post(server, "EnvironmentService/DeleteEnvironment", { environmentId })).status).toBe(200);
});

test("nobody reads or deletes a personal access token of somebody else, an administrator neither", async () => {
  const { personalAccessTokens: theirs } = (
    await post(server, "UserService/ListPersonalAccessTokens", {}, tokens.member)
  ).body;
  const mine = await post(server, "UserService/ListPersonalAccessTokens");
  expect(ids(mine, "personalAccessTokens")).not.toContain(theirs[0].id);
  const removal = await post(server, "UserService/DeletePersonalAccessToken", {
    personalAccessTokenId: theirs[0].id,
  });
  expect(refusal(removal)).toEqual([404, "not_found", "NOT_FOUND"]);
});

describe("a runner", () => {
  const as = (operation: string, body: object = {}) => post(server, operation, body, tokens.runner);

  test("reads itself, its classes and the environments on it", async () => {
    const identity = await as("IdentityService/GetAuthenticatedIdentity");
    expect(identity.body.subject).toEqual({ id: world.runner, principal: "PRINCIPAL_RUNNER" });
    expect((await as("RunnerService/GetRunner", { runnerId: world.runner })).status).toBe(200);
    const { environmentClass: environmentClassId, environment: environmentId } = world;
    const oneClass = await as("RunnerConfigurationService/GetEnvironmentClass", { environmentClassId });
    expect(oneClass.body.environmentClass.runnerId).toBe(world.runner);
    expect((await as("EnvironmentService/GetEnvironment", { environmentId })).status).toBe(200);
    const listed = await as("EnvironmentService/ListEnvironments");
    expect(ids(listed, "environments")).toContain(environmentId);
  });

  test("sees nothing of another runner of the organization", async () => {
    const { runner } = (await post(server, "RunnerService/CreateRunner", { name: "another" })).body;
    const { id: classId } = (
      await post(server, "RunnerConfigurationService/CreateEnvironmentClass", {
        runnerId: runner.runnerId,
        displayName: "Theirs",
        description: "a machine",
      })
    ).body;
    const spec = { machine: { class: classId } };
    const { environment } = (await post(server, "EnvironmentService/CreateEnvironment", { spec })).body;
    for (const [operation, body] of [
      ["RunnerService/GetRunner", { runnerId: runner.runnerId }],
      ["RunnerConfigurationService/GetEnvironmentClass", { environmentClassId: classId }],
      ["EnvironmentService/GetEnvironment", { environmentId: environment.id }],
    ] as const) {
      expect([operation, ...refusal(await as(operation, body))]).toEqual([operation, ...DENIED]);
    }
    const filter = { runnerIds: [runner.runnerId] };
    const environments = await as("EnvironmentService/ListEnvironments", { filter });
    expect(environments.body.environments).toEqual([]);
    const all = await as("EnvironmentService/ListEnvironments", { count: { include: true } });
    expect(ids(all, "environments")).not.toContain(environment.id);
    expect(all.body.count.value).toBe(all.body.environments.length);
    const classes = await as("RunnerConfigurationService/ListEnvironmentClasses");
    expect(classes.body.environmentClasses.map((each: Body) => each.runnerId)).toEqual([
      world.runner,
      world.runner,
    ]);
    const theirs = await as("RunnerConfigurationService/ListEnvironmentClasses", { filter });
    expect(theirs.body.environmentClasses).toEqual([]);
  });
});

describe("an environment", () => {
  test("reads itself and the project that it was created from", async () => {
    const as = (operation: string, body: object = {}) => post(server, operation, body, fromProject.token);
    const identity = await as("IdentityService/GetAuthenticatedIdentity");
    expect(identity.body.subject).toEqual({ id: fromProject.id, principal: "PRINCIPAL_ENVIRONMENT" });
    expect((await as("EnvironmentService/GetEnvironment", { environmentId: fromProject.id })).status).toBe(
      200,
    );
    expect((await as("ProjectService/GetProject", { projectId: world.project })).status).toBe(200);
    const other = await as("EnvironmentService/GetEnvironment", { environmentId: world.environment });
    expect(refusal(other)).toEqual(DENIED);
  });

  test("that came from no project reads none", async () => {
    const request = { projectId: world.project };
    const answer = await post(server, "ProjectService/GetProject", request, tokens.environment);
    expect(refusal(answer)).toEqual(DENIED);
  });
});
