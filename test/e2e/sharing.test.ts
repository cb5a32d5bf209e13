import { Code } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  leaseAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { watch } from "../harness/watch.ts";

type Body = Answer["body"];

let server: ReachableServer;
let home: AgentFixture;
/** Shares what is its own. */
let sharer: TestMember;
/** Is a member of the group. */
let friend: TestMember;
let stranger: TestMember;
let groupId: string;
let membershipId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
  const { organizationId } = home;
  const member = () => addMember(server, { organizationId, email: `${v7()}@example.org` });
  [sharer, friend, stranger] = [await member(), await member(), await member()];
  ({ id: groupId } = (await ok("GroupService/CreateGroup", { organizationId, name: "Friends" })).group);
  membershipId = await join(friend);
});
afterAll(stopAll);

const call = (operation: string, body: object, token = home.token) => post(server, operation, body, token);
const ok = (operation: string, body: object, token = home.token): Promise<Body> =>
  succeeded(call(operation, body, token));
const refusal = (answer: Answer) => [answer.body.code, reasonOf(answer)];
const DENIED = ["permission_denied", "PERMISSION_DENIED"];
const ABSENT = ["not_found", "NOT_FOUND"];
const join = async ({ userId: id }: TestMember): Promise<string> => {
  const subject = { id, principal: "PRINCIPAL_USER" };
  return (await ok("GroupService/CreateMembership", { groupId, subject })).member.id;
};
const WORKFLOW = "RESOURCE_TYPE_WORKFLOW";
const PROJECT = "RESOURCE_TYPE_PROJECT";
const RUN = "RESOURCE_TYPE_AGENT_EXECUTION";
const share = (resourceType: string, resourceId: string, role: string, token = sharer.token) =>
  call(
    "GroupService/CreateRoleAssignment",
    { groupId, resourceType, resourceId, role: `RESOURCE_ROLE_${role}` },
    token,
  );
const shared = async (resourceType: string, resourceId: string, role: string): Promise<Body> =>
  (await succeeded(share(resourceType, resourceId, role))).roleAssignment;
const setRole = (roleAssignmentId: string, role: string, token = sharer.token) =>
  call("GroupService/UpdateRoleAssignment", { roleAssignmentId, role: `RESOURCE_ROLE_${role}` }, token);
const unshare = (roleAssignmentId: string, token = sharer.token) =>
  call("GroupService/DeleteRoleAssignment", { roleAssignmentId }, token);
const sharers = async (resourceType: string, resourceId: string, token = sharer.token): Promise<Body[]> =>
  (await ok("GroupService/ListRoleAssignments", { resourceType, resourceId }, token)).roleAssignments;

const serviceAccount = async (): Promise<{ id: string; principal: string }> => {
  const request = { name: "robot", validUntil: "2999-12-31T00:00:00Z" };
  const { id } = (await ok("ServiceAccountService/CreateServiceAccount", request)).serviceAccount;
  return { id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
};
const workflow = async (executor?: object): Promise<string> => {
  const context = { repositories: { repositoryUrls: { repoUrls: ["https://example.org/a.git"] } } };
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] };
  const request = { name: "Nightly", triggers: [{ manual: {}, context }], action, executor };
  return (await ok("WorkflowService/CreateWorkflow", request, sharer.token)).workflow.id;
};
const project = async (): Promise<string> => {
  const request = { name: "ship", initializer: repository("https://example.org/a.git") };
  return (await ok("ProjectService/CreateProject", request, sharer.token)).project.id;
};
const startRun = (): Promise<LeasedAgentExecution> =>
  startLeasedAgentExecution({ ...home, token: sharer.token });
const readRun = (agentExecutionId: string, token = friend.token) =>
  call("AgentService/GetAgentExecution", { agentExecutionId }, token);
const runsOf = async (token: string, body: object = {}): Promise<string[]> =>
  (await ok("AgentService/ListAgentExecutions", body, token)).agentExecutions.map(({ id }: Body) => id);
const sendTo = (agentExecutionId: string, token = friend.token) =>
  call(
    "AgentService/SendToAgentExecution",
    { agentExecutionId, userInput: { inputs: [{ text: { content: "go on" } }] } },
    token,
  );

describe("a share", () => {
  test("is made, listed, changed and ended by who owns the resource", async () => {
    const id = await project();
    const made = await shared(PROJECT, id, "READ");
    expect(made).toEqual({
      id: made.id,
      organizationId: home.organizationId,
      groupId,
      resourceType: PROJECT,
      resourceId: id,
      role: "RESOURCE_ROLE_READ",
      creator: { id: sharer.userId, principal: "PRINCIPAL_USER" },
      createdAt: made.createdAt,
      updatedAt: made.createdAt,
    });
    expect(await shared(PROJECT, id, "READ")).toEqual(made);
    expect(refusal(await share(PROJECT, id, "USE"))).toEqual(["already_exists", "VALUE_TAKEN"]);
    const changed = (await succeeded(setRole(made.id, "USE"))).roleAssignment;
    expect(changed).toMatchObject({ ...made, role: "RESOURCE_ROLE_USE", updatedAt: changed.updatedAt });
    expect(await sharers(PROJECT, id, stranger.token)).toEqual([changed]);
    for (const token of [friend.token, stranger.token]) {
      expect(refusal(await share(PROJECT, id, "USE", token))).toEqual(DENIED);
      expect(refusal(await setRole(made.id, "ADMIN", token))).toEqual(DENIED);
      expect(refusal(await unshare(made.id, token))).toEqual(DENIED);
    }
    await succeeded(unshare(made.id));
    expect(refusal(await unshare(made.id))).toEqual(ABSENT);
    expect(refusal(await setRole(made.id, "USE"))).toEqual(ABSENT);
    expect(await sharers(PROJECT, id)).toEqual([]);
    const { entries } = await ok("EventService/ListAuditLogs", { filter: { subjectIds: [made.id] } });
    expect(entries.map(({ action, subjectType }: Body) => [action, subjectType]).toReversed()).toEqual([
      ["service.v1.GroupService/CreateRoleAssignment", "RESOURCE_TYPE_ROLE_ASSIGNMENT"],
      ["service.v1.GroupService/UpdateRoleAssignment", "RESOURCE_TYPE_ROLE_ASSIGNMENT"],
      ["service.v1.GroupService/DeleteRoleAssignment", "RESOURCE_TYPE_ROLE_ASSIGNMENT"],
    ]);
  });

  test("is of workflows, projects and agent runs of the organization, with its groups", async () => {
    const foreign = await addOrganization(server, `foreign ${v7()}`);
    const id = await project();
    expect(refusal(await share("RESOURCE_TYPE_ENVIRONMENT", id, "READ"))).toEqual([
      "invalid_argument",
      "VALUE_UNUSABLE",
    ]);
    expect(refusal(await share(WORKFLOW, id, "READ"))).toEqual(ABSENT);
    expect(refusal(await share(RUN, v7(), "READ"))).toEqual(ABSENT);
    expect(refusal(await share(PROJECT, id, "READ", foreign.token))).toEqual(ABSENT);
    const request = { organizationId: foreign.organizationId, name: "Theirs" };
    const theirs = (await ok("GroupService/CreateGroup", request, foreign.token)).group.id;
    const asked = { groupId: theirs, resourceType: PROJECT, resourceId: id, role: "RESOURCE_ROLE_READ" };
    expect(refusal(await call("GroupService/CreateRoleAssignment", asked, sharer.token))).toEqual(ABSENT);
    const made = await shared(PROJECT, id, "READ");
    expect(refusal(await unshare(made.id, foreign.token))).toEqual(ABSENT);
    for (const role of ["UNSPECIFIED", "9"])
      expect((await setRole(made.id, role)).body.code).toBe("invalid_argument");
  });

  test("is with 25 groups at most, which a list of groups can leave out", async () => {
    const id = await project();
    const groupIds: string[] = [];
    for (let number = 1; number <= 26; number++) {
      const request = { organizationId: home.organizationId, name: `Group ${number}` };
      groupIds.push((await ok("GroupService/CreateGroup", request)).group.id);
    }
    const one = (each: string) =>
      call("GroupService/CreateRoleAssignment", {
        groupId: each,
        resourceType: PROJECT,
        resourceId: id,
        role: "RESOURCE_ROLE_READ",
      });
    for (const each of groupIds.slice(0, 25)) await succeeded(one(each));
    expect(refusal(await one(groupIds[25] ?? ""))).toEqual(["failed_precondition", "LIMIT_REACHED"]);
    const filter = { excludeAssignedToResource: { resourceType: PROJECT, resourceId: id } };
    const { groups } = await ok("GroupService/ListGroups", { filter }, stranger.token);
    expect(groups.map((each: Body) => each.id)).toEqual([groupId, groupIds[25]]);
    const run = (await ok("AgentService/StartAgent", {}, sharer.token)).agentExecutionId;
    const not = async (token: string) => {
      const unread = { excludeAssignedToResource: { resourceType: RUN, resourceId: run } };
      return (await ok("GroupService/ListGroups", { filter: unread }, token)).groups.length;
    };
    expect([await not(sharer.token), await not(stranger.token)]).toEqual([25, 0]);
    const first = { resourceType: PROJECT, resourceId: id, pagination: { pageSize: 20 } };
    const page = await ok("GroupService/ListRoleAssignments", first);
    const rest = { ...first, pagination: { pageSize: 20, token: page.pagination.nextToken } };
    const listed = [
      ...page.roleAssignments,
      ...(await ok("GroupService/ListRoleAssignments", rest)).roleAssignments,
    ];
    expect(listed.map((each: Body) => each.groupId)).toEqual(groupIds.slice(0, 25));
  });
});

describe("a project that is shared", () => {
  test("is changed by those with the role for it, never with the creator as executor", async () => {
    const id = await project();
    const change = (more: object = { name: "renamed" }) =>
      call("ProjectService/UpdateProject", { projectId: id, ...more }, friend.token);
    const secret = (name: string) =>
      call(
        "SecretService/CreateSecret",
        { name, value: "a value", environmentVariable: true, scope: { projectId: id } },
        friend.token,
      );
    const made = await shared(PROJECT, id, "USE");
    expect(refusal(await change())).toEqual(DENIED);
    expect(refusal(await secret("ONE"))).toEqual(DENIED);
    await succeeded(setRole(made.id, "ADMIN"));
    expect((await change()).body.project.metadata.name).toBe("renamed");
    expect((await secret("ONE")).status).toBe(200);
    const executor = { id: sharer.userId, principal: "PRINCIPAL_USER" };
    const prebuildConfiguration = { enabled: false, executor };
    expect(refusal(await change({ prebuildConfiguration }))).toEqual(["invalid_argument", "VALUE_UNUSABLE"]);
    // Whose role allows it shares the project on, and ends that too.
    expect((await sharers(PROJECT, id, friend.token)).length).toBe(1);
    await succeeded(setRole(made.id, "READ", friend.token));
    expect(refusal(await change())).toEqual(DENIED);
  });

  test("is deleted with its shares", async () => {
    const id = await workflow();
    const made = await shared(WORKFLOW, id, "ADMIN");
    await ok("WorkflowService/DeleteWorkflow", { workflowId: id }, friend.token);
    await removed(made.id);
  });
});

describe("a workflow that is shared", () => {
  /** The preview of a start for the friend. */
  const previewed = (workflowId: string) =>
    ok("WorkflowService/PreviewWorkflow", { workflowId }, friend.token);

  test("is started by those with the role for it, as a service account alone", async () => {
    const executor = await serviceAccount();
    const id = await workflow(executor);
    const start = (token = friend.token) => call("WorkflowService/StartWorkflow", { workflowId: id }, token);
    const made = await shared(WORKFLOW, id, "READ");
    expect(refusal(await start())).toEqual(DENIED);
    expect((await previewed(id)).refusal.reason).toBe("ERROR_REASON_PERMISSION_DENIED");
    await succeeded(setRole(made.id, "USE"));
    expect((await previewed(id)).refusal).toBeUndefined();
    expect(refusal(await start(stranger.token))).toEqual(DENIED);
    const { workflowExecution } = await succeeded(start());
    expect(workflowExecution.metadata).toMatchObject({
      creator: { id: friend.userId },
      executor: { id: executor.id },
    });
    const change = () =>
      call("WorkflowService/UpdateWorkflow", { workflowId: id, name: "x y" }, friend.token);
    const cancel = async () => {
      const started = await ok("WorkflowService/StartWorkflow", { workflowId: id }, sharer.token);
      const workflowExecutionId = started.workflowExecution.id;
      return call("WorkflowService/CancelWorkflowExecution", { workflowExecutionId }, friend.token);
    };
    expect(refusal(await change())).toEqual(DENIED);
    expect(refusal(await cancel())).toEqual(DENIED);
    await succeeded(setRole(made.id, "ADMIN"));
    expect((await change()).status).toBe(200);
    expect((await cancel()).status).toBe(200);
    const secret = await call("WorkflowService/GetWorkflowWebhookSecret", { workflowId: id }, friend.token);
    expect(refusal(secret)).toEqual(DENIED);
  });

  test("is not started where it runs as the person who shares it", async () => {
    const id = await workflow();
    await shared(WORKFLOW, id, "ADMIN");
    const start = await call("WorkflowService/StartWorkflow", { workflowId: id }, friend.token);
    expect(refusal(start)).toEqual(DENIED);
    expect(start.body.message).toContain("runs as another person");
    expect((await previewed(id)).refusal.message).toBe(start.body.message);
    const steps = [{ task: { command: "env" } }];
    const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps };
    const change = await call("WorkflowService/UpdateWorkflow", { workflowId: id, action }, friend.token);
    expect(refusal(change)).toEqual(DENIED);
  });
});

describe("an agent run that is shared", () => {
  test("is read, listed and watched, with its approvals, files and events, until the share ends", async () => {
    const run = await startRun();
    await succeeded(run.report({ blocks: [{ sequence: 1, text: { content: "said" } }] }));
    const own = (await ok("AgentService/StartAgent", {}, friend.token)).agentExecutionId;
    expect(refusal(await readRun(run.id))).toEqual(ABSENT);
    expect(await runsOf(friend.token)).toEqual([own]);
    const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
    const events = watch(transport, friend.token);
    await events.opened;
    const made = await shared(RUN, run.id, "READ");
    await events.find(
      ({ resourceType, resourceId }) =>
        resourceType === ResourceType.ROLE_ASSIGNMENT && resourceId === made.id,
    );
    expect((await readRun(run.id)).body.agentExecution.id).toBe(run.id);
    expect(refusal(await readRun(run.id, stranger.token))).toEqual(ABSENT);
    expect(await runsOf(friend.token)).toEqual([own, run.id]);
    expect(await runsOf(stranger.token)).toEqual([]);
    const pagination = { pageSize: 1 };
    const first = await ok("AgentService/ListAgentExecutions", { pagination }, friend.token);
    expect(first.agentExecutions.map(({ id }: Body) => id)).toEqual([own]);
    const next = { pageSize: 1, token: first.pagination.nextToken };
    expect(await runsOf(friend.token, { pagination: next })).toEqual([run.id]);
    const { phase } = (await readRun(run.id)).body.agentExecution.status;
    expect(
      await runsOf(friend.token, { filter: { statusPhases: [phase], creatorIds: [sharer.userId] } }),
    ).toEqual([run.id]);
    const content = { environmentId: run.environmentId };
    const changes = (token: string) => call("EnvironmentService/GetEnvironmentChanges", content, token);
    // Nothing was reported of it yet, as its creator learns.
    expect(refusal(await changes(friend.token))).toEqual(ABSENT);
    expect(refusal(await changes(sharer.token))).toEqual(ABSENT);
    expect(refusal(await changes(stranger.token))).toEqual(DENIED);
    const stream = leasedAgentExecution({ ...home, token: friend.token }, run.id, run.work).watch();
    await stream.find(({ news }) => news.case === "block");
    await run.wait();
    await events.find(
      ({ resourceType, resourceId }) =>
        resourceType === ResourceType.AGENT_EXECUTION && resourceId === run.id,
    );
    await succeeded(unshare(made.id));
    expect((await stream.ended).code).toBe(Code.NotFound);
    expect(refusal(await readRun(run.id))).toEqual(ABSENT);
    expect(await runsOf(friend.token)).toEqual([own]);
    expect(refusal(await changes(friend.token))).toEqual(DENIED);
    const before = events.messages.length;
    await succeeded(run.report({ currentActivity: "thinks" }));
    const { runner } = await ok("RunnerService/CreateRunner", { name: "the end" });
    await events.find(({ resourceId }) => resourceId === runner.runnerId);
    const later = events.messages.slice(before).map(({ resourceId }) => resourceId);
    expect(later).not.toContain(run.id);
    events.cancel();
  });

  test.each<[string, () => Promise<unknown>, Code]>([
    ["who leaves the group", () => ok("GroupService/DeleteMembership", { membershipId }), Code.NotFound],
    ["whose group is deleted", () => ok("GroupService/DeleteGroup", { groupId }), Code.NotFound],
    [
      "who is suspended",
      () => ok("UserService/SetSuspended", { userId: friend.userId, suspended: true }),
      Code.Unauthenticated,
    ],
    [
      "whose organization stops to share",
      () =>
        ok("OrganizationService/UpdateOrganizationPolicies", {
          organizationId: home.organizationId,
          agentPolicy: { conversationSharingPolicy: "CONVERSATION_SHARING_POLICY_DISABLED" },
        }),
      Code.NotFound,
    ],
  ])("is no longer watched nor read by one %s", async (_, end, code) => {
    const run = await startRun();
    await shared(RUN, run.id, "READ");
    const stream = leasedAgentExecution({ ...home, token: friend.token }, run.id, run.work).watch();
    await stream.find(({ news }) => news.case === "agentExecution");
    await end();
    expect((await stream.ended).code).toBe(code);
    expect((await readRun(run.id)).status).not.toBe(200);
  });

  test("is shared only where the organization has not chosen that conversations are not", async () => {
    const run = await startRun();
    const choose = (conversationSharingPolicy: string) =>
      ok("OrganizationService/UpdateOrganizationPolicies", {
        organizationId: home.organizationId,
        agentPolicy: {
          conversationSharingPolicy: `CONVERSATION_SHARING_POLICY_${conversationSharingPolicy}`,
        },
      });
    await choose("DISABLED");
    expect(refusal(await share(RUN, run.id, "READ"))).toEqual(["failed_precondition", "POLICY_DENIED"]);
    await choose("ORGANIZATION");
    await shared(RUN, run.id, "USE");
    await choose("DISABLED");
    expect(refusal(await readRun(run.id))).toEqual(ABSENT);
    expect(refusal(await sendTo(run.id))).toEqual(ABSENT);
    expect(await runsOf(friend.token)).toEqual([]);
  });

  test("is sent to, stopped and deleted by those with the role for it", async () => {
    const run = await startRun();
    const stop = () => call("AgentService/StopAgentExecution", { agentExecutionId: run.id }, friend.token);
    const made = await shared(RUN, run.id, "READ");
    expect(refusal(await sendTo(run.id))).toEqual(DENIED);
    await succeeded(setRole(made.id, "USE"));
    expect(refusal(await sendTo(run.id, stranger.token))).toEqual(ABSENT);
    await succeeded(sendTo(run.id));
    const [input] = await run.list();
    expect(input.sender).toEqual({ id: friend.userId, principal: "PRINCIPAL_USER" });
    expect(refusal(await stop())).toEqual(DENIED);
    const resume = await call("AgentService/StartAgent", { resumeFrom: run.id }, friend.token);
    expect(refusal(resume)).toEqual(DENIED);
    await succeeded(setRole(made.id, "ADMIN"));
    await succeeded(stop());
    await succeeded(home.runner.finish(run.work, "OUTCOME_STOPPED"));
    await ok("AgentService/DeleteAgentExecution", { agentExecutionId: run.id }, friend.token);
    await removed(made.id);
  });

  test("is not sent to where its creator has secrets of its own", async () => {
    const run = await startRun();
    await shared(RUN, run.id, "USE");
    const scope = { userId: sharer.userId };
    const request = { name: "MINE", value: "a value", environmentVariable: true, scope };
    await ok("SecretService/CreateSecret", request, sharer.token);
    const refused = await sendTo(run.id);
    expect(refusal(refused)).toEqual(DENIED);
    expect(refused.body.message).toContain("secrets");
    await succeeded(sendTo(run.id, sharer.token));
  });

  test("that somebody has sent to gets no secret that its creator makes for itself later", async () => {
    const made = [await startRun(), await startRun()] as const;
    const [steered, other] = made;
    for (const { id } of made) await shared(RUN, id, "USE");
    await succeeded(sendTo(steered.id));
    await succeeded(sendTo(steered.id, home.token));
    await succeeded(sendTo(other.id, home.token));
    const scope = { userId: sharer.userId };
    const request = { name: "MINE", value: "a value", environmentVariable: true, scope };
    await ok("SecretService/CreateSecret", request, sharer.token);
    const namesOf = async ({ id, work }: LeasedAgentExecution) => {
      await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
      const again = await leaseAgentExecution(home.runner, id);
      return again.secrets.map(({ name }: Body) => name);
    };
    expect(await namesOf(other)).toEqual(["MINE"]);
    expect(await namesOf(steered)).toEqual([]);
  });

  test("that is gone keeps those secrets from its environment all the same", async () => {
    const machine = { class: home.runner.environmentClassId };
    const spec = { machine, content: { initializer: repository("https://example.org/a.git") } };
    const made = await ok("EnvironmentService/CreateEnvironment", { name: "Mine", spec }, sharer.token);
    const environmentId = made.environment.id;
    const at = { ...home, token: sharer.token };
    const run = await startLeasedAgentExecution(at, { codeContext: { environmentId } });
    await shared(RUN, run.id, "USE");
    await succeeded(sendTo(run.id));
    await ok("AgentService/StopAgentExecution", { agentExecutionId: run.id }, sharer.token);
    await succeeded(home.runner.finish(run.work, "OUTCOME_STOPPED"));
    await ok("AgentService/DeleteAgentExecution", { agentExecutionId: run.id }, sharer.token);
    const scope = { userId: sharer.userId };
    const request = { name: "MINE", value: "a value", environmentVariable: true, scope };
    await ok("SecretService/CreateSecret", request, sharer.token);
    const body = { codeContext: { environmentId } };
    const { agentExecutionId } = await ok("AgentService/StartAgent", body, sharer.token);
    expect((await leaseAgentExecution(home.runner, agentExecutionId)).secrets).toEqual([]);
  });
});

/** Waits until a share has been removed with its resource. */
async function removed(roleAssignmentId: string): Promise<void> {
  const filter = { subjectIds: [roleAssignmentId] };
  await until(
    async () => (await ok("EventService/ListAuditLogs", { filter })).entries[0].action,
    (action) => !action.startsWith("service.v1.GroupService/"),
  );
}
