import { Code } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import type { WatchEventsResponse } from "#gen/service/v1/event_service_pb.js";
import { post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type AgentFixture, createAgentFixture } from "../harness/leased-agent-execution.ts";
import { addMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { watch } from "../harness/watch.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer();
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const transport = () => createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
const as = (token: string, operation: string, body: object) =>
  succeeded(post(server, operation, body, token));
const admin = (operation: string, body: object) => as(home.token, operation, body);

const projectOf = async (token = home.token): Promise<string> => {
  const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/team/ship.git" } }] };
  return (await as(token, "ProjectService/CreateProject", { name: `ship ${v7()}`, initializer })).project.id;
};
const personalTokenOf = async (token: string): Promise<string> => {
  const description = v7();
  await as(token, "UserService/CreatePersonalAccessToken", { description });
  const { personalAccessTokens } = await as(token, "UserService/ListPersonalAccessTokens", {
    pagination: { pageSize: 100 },
  });
  return personalAccessTokens.find((each: { description: string }) => each.description === description).id;
};
const runOf = async (token: string): Promise<string> =>
  (await as(token, "AgentService/StartAgent", { agentId: home.agentId })).agentExecutionId;
const setSharing = (policy: "ORGANIZATION" | "UNSPECIFIED") =>
  home.set({ agentPolicy: { conversationSharingPolicy: `CONVERSATION_SHARING_POLICY_${policy}` } });

/** Ids that a stream has named, up to a project that is made now, in their order and each once. */
async function namedBy(stream: ReturnType<typeof watch>): Promise<Set<string>> {
  const mark = await projectOf();
  await stream.find(({ resourceId }) => resourceId === mark);
  return new Set(stream.messages.map(({ resourceId }) => resourceId));
}

const join = (more: { administrator?: boolean } = {}) =>
  addMember(server, { organizationId: home.organizationId, email: `${v7()}@example.org`, ...more });

describe("the audit trail of an organization", () => {
  test.each([
    ["EventService/ListAuditLogs", {}],
    ["EventService/GetAuditLog", { auditLogEntryId: v7() }],
  ])("is not for members who are no administrators: %s", async (operation, body) => {
    const { token } = await join();
    const answer = await post(server, operation, body, token);
    expect([answer.status, reasonOf(answer)]).toEqual([403, "PERMISSION_DENIED"]);
  });
});

describe("a member's stream of events", () => {
  test("tells of what the member may read, and of nothing else", async () => {
    const [member, other] = [await join(), await join()];
    const stream = watch(transport(), member.token);
    await stream.opened;
    const own = [
      await projectOf(member.token),
      await personalTokenOf(member.token),
      await runOf(member.token),
    ];
    const shared = await projectOf(other.token);
    const hidden = [await personalTokenOf(other.token), await runOf(other.token)];
    const hostToken = { runnerId: home.runner.runnerId, host: `${v7()}.example.org`, token: "value" };
    const create = "RunnerConfigurationService/CreateHostAuthenticationToken";
    hidden.push((await as(other.token, create, hostToken)).token.id);
    own.push((await as(member.token, create, hostToken)).token.id);
    const named = await namedBy(stream);
    expect([...own, shared].filter((id) => !named.has(id))).toEqual([]);
    expect(hidden.filter((id) => named.has(id))).toEqual([]);
    stream.cancel();
  });

  test("tells of what is gone by the rights that it had", async () => {
    const [member, other] = [await join(), await join()];
    const [own, hidden] = [await runOf(member.token), await runOf(other.token)];
    const stream = watch(transport(), member.token);
    await stream.opened;
    for (const agentExecutionId of [own, hidden]) {
      await admin("AgentService/StopAgentExecution", { agentExecutionId });
      await admin("AgentService/DeleteAgentExecution", { agentExecutionId });
    }
    const named = await namedBy(stream);
    expect([named.has(own), named.has(hidden)]).toEqual([true, false]);
    stream.cancel();
  });

  test("follows the policy that shares conversations, each way at once", async () => {
    const member = await join();
    const stream = watch(transport(), member.token);
    await stream.opened;
    const before = await runOf(home.token);
    await setSharing("ORGANIZATION");
    const during = await runOf(home.token);
    await setSharing("UNSPECIFIED");
    const after = await runOf(home.token);
    const named = await namedBy(stream);
    expect([before, during, after].map((id) => named.has(id))).toEqual([false, true, false]);
    stream.cancel();
  });

  test("leaves numbers out without a gap, says how far it has come, and is resumed there", async () => {
    const [member, other] = [await join(), await join()];
    const stream = watch(transport(), member.token);
    await stream.opened;
    // Each leaves one event: a number that the member's stream leaves out.
    for (let made = 0; made < 100; made++) {
      await as(other.token, "UserService/CreatePersonalAccessToken", { description: `${made}` });
    }
    const isPosition = ({ operation }: WatchEventsResponse) => operation === ResourceOperation.UNSPECIFIED;
    const position = await stream.find(isPosition);
    expect(position).toMatchObject({
      resourceType: ResourceType.ORGANIZATION,
      resourceId: home.organizationId,
    });
    expect(position.historyPruned).toBeUndefined();
    stream.cancel();
    const project = await projectOf();
    const resumed = watch(transport(), member.token, { afterSequence: position.sequence });
    expect((await resumed.find(({ resourceId }) => resourceId === project)).historyPruned).toBeUndefined();
    resumed.cancel();
  });

  test("ends when the member is removed, and a role that is lost filters what follows", async () => {
    const [leaving, demoted, other] = [await join(), await join({ administrator: true }), await join()];
    const [ending, filtered] = [watch(transport(), leaving.token), watch(transport(), demoted.token)];
    await Promise.all([ending.opened, filtered.opened]);
    const { organizationId } = home;
    const before = await personalTokenOf(other.token);
    await filtered.find(({ resourceId }) => resourceId === before);
    const role = "ORGANIZATION_ROLE_MEMBER";
    await admin("OrganizationService/SetRole", { organizationId, userId: demoted.userId, role });
    const after = await personalTokenOf(other.token);
    await admin("OrganizationService/RemoveMember", { organizationId, userId: leaving.userId });
    expect((await ending.ended).code).toBe(Code.Unauthenticated);
    const named = await namedBy(filtered);
    expect([named.has(before), named.has(after)]).toEqual([true, false]);
    filtered.cancel();
  });
});

describe("the filters of a stream of events", () => {
  test("the scope of an environment tells of it and of the agent runs in it", async () => {
    const spec = { machine: { class: home.runner.environmentClassId } };
    const create = (name: string) => admin("EnvironmentService/CreateEnvironment", { name, spec });
    const ids: string[] = [];
    for (const name of ["one", "two"]) ids.push((await create(name)).environment.id);
    const [inside = "", outside = ""] = ids;
    const scope = { case: "environmentId", value: inside.toUpperCase() } as const;
    const stream = watch(transport(), home.token, { scope });
    await stream.opened;
    const runs: string[] = [];
    for (const environmentId of [outside, inside]) {
      const codeContext = { environmentId };
      const asked = { agentId: home.agentId, codeContext };
      runs.push((await admin("AgentService/StartAgent", asked)).agentExecutionId);
    }
    await stream.find(({ resourceId }) => resourceId === runs[1]);
    expect(
      [...new Set(stream.messages.map(({ resourceId }) => resourceId))].filter((id) => id !== inside),
    ).toEqual([runs[1]]);
    stream.cancel();
    const foreign = await watch(transport(), home.token, { scope: { ...scope, value: v7() } }).ended;
    expect(foreign.code).toBe(Code.NotFound);
  });

  test("combine conditions with AND and filters with OR", async () => {
    const [member, other] = [await join(), await join()];
    const { PROJECT, RUNNER } = ResourceType;
    const wanted = await projectOf(other.token);
    const stream = watch(transport(), home.token, {
      resourceTypeFilters: [
        { resourceType: PROJECT, creatorIds: [member.userId] },
        { resourceType: PROJECT, resourceIds: [wanted] },
        { resourceType: RUNNER, resourceIds: [wanted] },
      ],
    });
    await stream.opened;
    await projectOf(other.token);
    const own = await projectOf(member.token);
    await admin("ProjectService/UpdateProject", { projectId: wanted, name: `ship ${v7()}` });
    expect((await stream.until(2)).map(({ resourceId }) => resourceId)).toEqual([own, wanted]);
    stream.cancel();
  });
});
