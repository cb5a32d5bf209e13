import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: HostedServer;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--webhook-private-hosts", "127.0.0.1"] });
  ({ organizationId } = await call("IdentityService/GetAuthenticatedIdentity"));
});
afterAll(stopAll);

const call = (operation: string, body: object = {}): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
const rows = async () =>
  (await call("EventService/ListAuditLogs", { pagination: { pageSize: 100 } })).entries;

const PROJECT = {
  name: "Ship",
  initializer: repository("https://git.example.org/team/ship.git"),
  devcontainerFilePath: ".devcontainer/devcontainer.json",
  annotations: { team: "harbour" },
};
const newProject = async () => (await call("ProjectService/CreateProject", PROJECT)).project;
const getProject = async (projectId: string) =>
  (await call("ProjectService/GetProject", { projectId })).project;

/** Each update, of a resource that the first function makes; the second gives the requests that change nothing. */
const UPDATES: readonly [
  operation: string,
  make: () => Promise<Answer["body"]>,
  requests: (made: Answer["body"]) => readonly object[],
  read: (made: Answer["body"]) => Promise<Answer["body"]>,
][] = [
  [
    "ProjectService/UpdateProject",
    newProject,
    ({ id }) => [
      { projectId: id },
      { projectId: id, name: "Ship", annotations: { values: { team: "harbour" } } },
      { projectId: id, automationsFilePath: "", recommendedEditors: {} },
    ],
    ({ id }) => getProject(id),
  ],
  [
    "ProjectService/UpdateProjects",
    newProject,
    ({ id }) => [{ projects: [{ projectId: id }, { projectId: id, name: "Ship" }] }],
    ({ id }) => getProject(id),
  ],
  [
    "ProjectService/UpdateProjectEnvironmentClasses",
    async () => {
      const { id: projectId } = await newProject();
      const request = { projectId, projectEnvironmentClasses: [{ localRunner: true }] };
      await call("ProjectService/UpdateProjectEnvironmentClasses", request);
      return getProject(projectId);
    },
    ({ id, environmentClasses }) => [{ projectId: id, projectEnvironmentClasses: environmentClasses }],
    ({ id }) => getProject(id),
  ],
  [
    "SecurityService/UpdateSecurityPolicy",
    async () =>
      (
        await call("SecurityService/CreateSecurityPolicy", {
          organizationId,
          metadata: { name: "Careful" },
          spec: { executables: { rules: [{ path: "/usr/bin/nc", effect: "EFFECT_BLOCK" }] } },
        })
      ).securityPolicy,
    ({ id, metadata, spec }) => [{ securityPolicyId: id }, { securityPolicyId: id, metadata, spec }],
    async ({ id: securityPolicyId }) =>
      (await call("SecurityService/GetSecurityPolicy", { securityPolicyId })).securityPolicy,
  ],
  [
    "EventSubscriptionService/UpdateEventSubscription",
    async () =>
      (
        await call("EventSubscriptionService/CreateEventSubscription", {
          name: "Chat",
          url: "https://hooks.example.org/a",
          eventKinds: ["group.deleted"],
        })
      ).eventSubscription,
    ({ id: eventSubscriptionId }) => [
      { eventSubscriptionId },
      { eventSubscriptionId, name: "Chat", eventKinds: ["group.deleted"], paused: false },
    ],
    async ({ id: eventSubscriptionId }) =>
      (await call("EventSubscriptionService/GetEventSubscription", { eventSubscriptionId }))
        .eventSubscription,
  ],
  [
    "OrganizationService/UpdateOrganization",
    async () => (await call("OrganizationService/GetOrganization", { organizationId })).organization,
    ({ name }) => [{ organizationId }, { organizationId, name }],
    async () => (await call("OrganizationService/GetOrganization", { organizationId })).organization,
  ],
  [
    "GroupService/UpdateGroup",
    async () => (await call("GroupService/CreateGroup", { organizationId, name: "Crew" })).group,
    ({ id: groupId, name, description }) => [{ groupId, name, description }],
    async ({ id: groupId }) => (await call("GroupService/GetGroup", { groupId })).group,
  ],
];

test.each(UPDATES)("%s that changes nothing leaves no trace", async (operation, make, requests, read) => {
  const made = await make();
  const before = await read(made);
  const recorded = await rows();
  expect(recorded.length).toBeGreaterThan(0);
  for (const request of requests(made)) await call(operation, request);
  expect(await read(made)).toEqual(before);
  expect(await rows()).toEqual(recorded);
});

test("an update that changes one value moves the time and is recorded", async () => {
  const made = await newProject();
  const count = (await rows()).length;
  const { project } = await call("ProjectService/UpdateProject", { projectId: made.id, name: "Boat" });
  expect(Date.parse(project.metadata.updatedAt)).toBeGreaterThanOrEqual(Date.parse(made.metadata.updatedAt));
  expect((await rows()).length).toBe(count + 1);
});
