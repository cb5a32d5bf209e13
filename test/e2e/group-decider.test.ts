import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ApprovalDecidersSchema, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { askApproval } from "../../src/services/approval/approval-asking.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { ASKED } from "./world.ts";

type Body = Answer["body"];

let server: ReachableServer;
let home: AgentFixture;
let groupId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
  const { organizationId } = home;
  ({ id: groupId } = (await ok("GroupService/CreateGroup", { organizationId, name: "Deciders" })).group);
});
afterAll(stopAll);

const ok = (operation: string, body: object, token = home.token): Promise<Body> =>
  succeeded(post(server, operation, body, token));
const refusal = (answer: Answer) => [answer.body.code, reasonOf(answer)];
const member = (): Promise<TestMember> =>
  addMember(server, { organizationId: home.organizationId, email: `${v7()}@example.org` });
const user = (id: string) => ({ id, principal: "PRINCIPAL_USER" });
const join = async (subject: object): Promise<string> =>
  (await ok("GroupService/CreateMembership", { groupId, subject })).member.id;
/** Has an agent run ask for something that `required` users of the group must approve. */
const ask = async (required: number, userIds: string[] = []): Promise<{ id: string; digest: string }> => {
  const { agentExecutionId } = await ok("AgentService/StartAgent", {});
  const { subject } = await ok("IdentityService/GetAuthenticatedIdentity", {});
  return withServerData(server, (store) =>
    store.write(OPERATOR, "test", (tx) =>
      askApproval(
        tx,
        { organizationId: home.organizationId },
        {
          asked: ASKED,
          asker: { agentExecutionId, toolCallId: "call", workflowExecutionId: "", workflowActionId: "" },
          creator: create(SubjectSchema, { id: subject.id, principal: Principal.USER }),
          deciders: create(ApprovalDecidersSchema, {
            who: Who.USERS,
            groupIds: [groupId],
            userIds,
            required,
          }),
          policyFieldPath: "agentPolicy.approvals",
          isShared: false,
        },
      ),
    ),
  );
};
const decide = (approval: { id: string; digest: string }, token: string) =>
  post(
    server,
    "ApprovalService/DecideApproval",
    { approvalId: approval.id, digest: approval.digest, decision: "DECISION_APPROVE" },
    token,
  );
const listed = async (token: string): Promise<string[]> =>
  (await ok("ApprovalService/ListApprovals", {}, token)).approvals.map(({ id }: Body) => id);

describe("an approval that names a group", () => {
  test("is read and decided by its users, who are those of the moment", async () => {
    const [first, second, third, stranger] = [await member(), await member(), await member(), await member()];
    const firstMembership = await join(user(first.userId));
    await join(user(second.userId));
    const approval = await ask(2);
    expect(await listed(first.token)).toEqual([approval.id]);
    expect(await listed(stranger.token)).toEqual([]);
    expect(refusal(await decide(approval, stranger.token))).toEqual(["not_found", "NOT_FOUND"]);
    // An administrator reads it, and is none of those whom it names.
    expect(refusal(await decide(approval, home.token))).toEqual(["permission_denied", "PERMISSION_DENIED"]);
    const state = async (answer: Promise<Answer>) => (await succeeded(answer)).approval.state;
    expect(await state(decide(approval, first.token))).toBe("APPROVAL_STATE_PENDING");
    await ok("GroupService/DeleteMembership", { membershipId: firstMembership });
    expect(await listed(first.token)).toEqual([]);
    // Who is no member any more does not count.
    expect(await state(decide(approval, second.token))).toBe("APPROVAL_STATE_PENDING");
    await join(user(third.userId));
    expect(await state(decide(approval, third.token))).toBe("APPROVAL_STATE_APPROVED");
  });

  test("and the same id as that of a user is asked for", async () => {
    const { userId, token } = await member();
    await join(user(userId));
    const approval = await ask(1, [groupId]);
    expect((await succeeded(decide(approval, token))).approval.state).toBe("APPROVAL_STATE_APPROVED");
  });

  test("is read, and not decided, by those with whom its run is shared", async () => {
    const { userId, token } = await member();
    const approval = await ask(1);
    const { organizationId } = home;
    const readers = (await ok("GroupService/CreateGroup", { organizationId, name: "Readers" })).group.id;
    await ok("GroupService/CreateMembership", { groupId: readers, subject: user(userId) });
    const [{ asker }] = (await ok("ApprovalService/ListApprovals", {})).approvals;
    const get = () => post(server, "ApprovalService/GetApproval", { approvalId: approval.id }, token);
    expect(await listed(token)).toEqual([]);
    expect(refusal(await get())).toEqual(["not_found", "NOT_FOUND"]);
    const { roleAssignment } = await ok("GroupService/CreateRoleAssignment", {
      groupId: readers,
      resourceType: "RESOURCE_TYPE_AGENT_EXECUTION",
      resourceId: asker.agentExecutionId,
      role: "RESOURCE_ROLE_ADMIN",
    });
    expect(await listed(token)).toEqual([approval.id]);
    expect((await get()).status).toBe(200);
    expect(refusal(await decide(approval, token))).toEqual(["permission_denied", "PERMISSION_DENIED"]);
    await ok("GroupService/DeleteRoleAssignment", { roleAssignmentId: roleAssignment.id });
    expect(await listed(token)).toEqual([]);
  });

  test("is not decided by a service account of the group", async () => {
    const validUntil = "2999-12-31T00:00:00Z";
    const made = await ok("ServiceAccountService/CreateServiceAccount", { name: "robot", validUntil });
    const serviceAccountId = made.serviceAccount.id;
    const { token } = await ok("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId });
    await join({ id: serviceAccountId, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
    const approval = await ask(1);
    expect(refusal(await decide(approval, token))).toEqual(["permission_denied", "PERMISSION_DENIED"]);
  });
});

describe("deciders that are written", () => {
  const policy = (deciders: object) => ({
    organizationId: home.organizationId,
    agentPolicy: { approvals: { rules: [{ effect: "EFFECT_ASK", deciders }] } },
  });
  const workflow = (deciders: object) => ({
    name: "Deploy",
    triggers: [
      {
        manual: {},
        context: { repositories: { repositoryUrls: { repoUrls: ["https://example.org/a.git"] } } },
      },
    ],
    action: {
      limits: { maxParallel: 1, maxTotal: 1 },
      steps: [{ approval: { message: "Deploy?", deciders } }, { task: { command: "true" } }],
    },
  });

  test.each<[string, (deciders: object) => object]>([
    ["OrganizationService/UpdateOrganizationPolicies", policy],
    ["WorkflowService/CreateWorkflow", workflow],
  ])("by %s need enough active users of the group", async (operation, request) => {
    const write = (required: number, groupIds = [groupId]) =>
      post(server, operation, request({ who: "WHO_USERS", groupIds, required }), home.token);
    const UNUSABLE = ["invalid_argument", "VALUE_UNUSABLE"];
    expect(refusal(await write(1))).toEqual(UNUSABLE);
    const [one, two] = [await member(), await member()];
    await join(user(one.userId));
    expect(refusal(await write(2))).toEqual(UNUSABLE);
    await join(user(two.userId));
    expect((await write(2)).status).toBe(200);
    await ok("UserService/SetSuspended", { userId: two.userId, suspended: true });
    expect(refusal(await write(2))).toEqual(UNUSABLE);
    expect((await write(1)).status).toBe(200);
    expect(refusal(await write(1, [v7()]))).toEqual(["not_found", "NOT_FOUND"]);
  });
});

describe("source-control tools that are limited to a group", () => {
  test("are given to the agents of its members", async () => {
    const organizationId = home.organizationId;
    const limit = (scmToolsAllowedGroupId: string) =>
      post(
        server,
        "OrganizationService/UpdateOrganizationPolicies",
        { organizationId, agentPolicy: { scmToolsAllowedGroupId } },
        home.token,
      );
    expect(refusal(await limit(v7()))).toEqual(["not_found", "NOT_FOUND"]);
    expect((await limit(groupId)).status).toBe(200);
    const withheld = await startLeasedAgentExecution(home, {});
    expect(withheld.work.policies.agentPolicy).toMatchObject({
      scmToolsDisabled: true,
      scmToolsAllowedGroupId: groupId,
    });
    const { subject } = await ok("IdentityService/GetAuthenticatedIdentity", {});
    await join(subject);
    const given = await startLeasedAgentExecution(home, {});
    expect(given.work.policies.agentPolicy).toMatchObject({
      scmToolsDisabled: false,
      scmToolsAllowedGroupId: "",
    });
  });
});
