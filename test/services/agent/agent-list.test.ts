import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { AgentExecution_Phase as Phase, AgentExecutionRole as Role } from "#gen/service/v1/agent_pb.js";
import type { ListAgentExecutionsRequest_FilterSchema } from "#gen/service/v1/agent_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ConversationSharingPolicy as Sharing } from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { registeredRunner } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";
import { addAgent, agentsOf, type Runs, runsOn } from "./agents.ts";

type Filter = MessageInitShape<typeof ListAgentExecutionsRequest_FilterSchema>;

let made: TestStore;
let caller: Caller;
let member: Caller;
let runs: Runs;
let theirs: Runs;
let strangers: Runs;
let agentIds: string[];
let projectId: string;
/** Runs of the administrator, oldest first: of a project, of another agent with annotations, and stopped. */
let ids: string[];
let memberRun: string;
let strangerRun: string;

beforeAll(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  const island = await made.createOrganization("island");
  runs = runsOn(made, caller, await registeredRunner(made, caller));
  strangers = runsOn(made, island, await registeredRunner(made, island));
  agentIds = [
    await addAgent(made, caller.organizationId, { name: "coder", isDefault: true }),
    await addAgent(made, null, { name: "reviewer", isDefault: true }),
  ];
  const { organizationId } = caller;
  const second = await insertTestMember(made.store, made.keys, {
    organizationId,
    email: "second@example.org",
  });
  const tokenId = await made.issueTokenId(second.userId);
  member = { ...userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId), role: "member" };
  theirs = runsOn(made, member, await registeredRunner(made, caller, { name: "south" }));
  projectId = await servicesOf(made, caller).project("ship");
  const annotations = { "example.org/ticket": "7", "example.org/team": "red" };
  ids = [
    await runs.start({ codeContext: { context: { case: "projectId", value: projectId } } }),
    await runs.start({ agentId: agentIds[1] ?? "", annotations }),
    await runs.start({ annotations: { "example.org/ticket": "7" } }),
  ];
  await runs.agents.stopAgentExecution({ agentExecutionId: ids[2] ?? "" });
  memberRun = await theirs.start();
  strangerRun = await strangers.start();
});
afterAll(() => made.close());

const listed = async (by: Runs, filter: Filter = {}) =>
  (await by.agents.listAgentExecutions({ filter })).agentExecutions.map(({ id }) => id);
const share = (conversationSharingPolicy: Sharing) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies({
    organizationId: caller.organizationId,
    agentPolicy: { conversationSharingPolicy },
  });

describe("a list of runs", () => {
  test("has the newest first, and none of another organization", async () => {
    expect(await listed(runs)).toEqual([memberRun, ...ids.toReversed()]);
    expect(await listed(strangers)).toEqual([strangerRun]);
  });

  test("is narrowed by each field, values with OR and fields with AND", async () => {
    const [ofProject = "", ofReviewer = "", stopped = ""] = ids;
    const environmentId = (await runs.get(ofReviewer))?.status?.usedEnvironments[0]?.environmentId ?? "";
    const sessionId = (await runs.get(stopped))?.metadata?.sessionId ?? "";
    const cases: [Filter, string[]][] = [
      [{ agentExecutionIds: [ofProject, stopped, strangerRun] }, [stopped, ofProject]],
      [{ agentIds: [agentIds[1]?.toUpperCase() ?? ""] }, [ofReviewer]],
      [{ agentIds }, [memberRun, stopped, ofReviewer, ofProject]],
      [{ projectIds: [projectId] }, [ofProject]],
      [{ environmentIds: [environmentId.toUpperCase()] }, [ofReviewer]],
      [{ creatorIds: [member.subject.id] }, [memberRun]],
      [{ sessionIds: [sessionId] }, [stopped]],
      [{ statusPhases: [Phase.STOPPED] }, [stopped]],
      [{ statusPhases: [Phase.STOPPED, Phase.PENDING], projectIds: [projectId] }, [ofProject]],
      [{ statusPhases: [Phase.UNSPECIFIED] }, []],
      [{ roles: [Role.DEFAULT] }, [memberRun, stopped, ofReviewer, ofProject]],
      [{ roles: [Role.WORKFLOW] }, []],
      [{ annotations: { "example.org/ticket": "7" } }, [stopped, ofReviewer]],
      [{ annotations: { "example.org/ticket": "7", "example.org/team": "red" } }, [ofReviewer]],
      [{ annotations: { "example.org/ticket": "8" } }, []],
    ];
    for (const [filter, expected] of cases)
      expect([filter, await listed(runs, filter)]).toEqual([filter, expected]);
  });

  test("comes in pages, whose tokens are for their query alone", async () => {
    const page = (token: string, filter: Filter = {}) =>
      runs.agents.listAgentExecutions({ filter, pagination: { pageSize: 3, token } });
    const first = await page("");
    const second = await page(first.pagination?.nextToken ?? "");
    const found = [...first.agentExecutions, ...second.agentExecutions].map(({ id }) => id);
    expect(found).toEqual([memberRun, ...ids.toReversed()]);
    expect(second.pagination?.nextToken).toBe("");
    await expect(page(first.pagination?.nextToken ?? "", { roles: [Role.DEFAULT] })).rejects.toMatchObject({
      reason: ErrorReason.PAGE_TOKEN_INVALID,
    });
  });
});

describe("the runs of others", () => {
  test.each([Sharing.UNSPECIFIED, Sharing.DISABLED])(
    "are none of a member's business under %s",
    async (policy) => {
      await share(policy);
      expect(await listed(theirs)).toEqual([memberRun]);
      expect(await listed(theirs, { agentExecutionIds: ids })).toEqual([]);
      await expect(theirs.get(ids[0] ?? "")).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
      expect((await theirs.get(memberRun))?.id).toBe(memberRun);
      expect((await runs.get(memberRun))?.id).toBe(memberRun);
    },
  );

  test("are open to members where they are shared, and to no other organization", async () => {
    await share(Sharing.ORGANIZATION);
    expect(await listed(theirs)).toEqual([memberRun, ...ids.toReversed()]);
    expect((await theirs.get(ids[0] ?? ""))?.id).toBe(ids[0]);
    await expect(strangers.get(ids[0] ?? "")).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await share(Sharing.DISABLED);
  });

  test("are stopped and deleted by administrators alone", async () => {
    const hidden = { reason: ErrorReason.NOT_FOUND };
    const denied = { reason: ErrorReason.PERMISSION_DENIED };
    const agentExecutionId = ids[1] ?? "";
    for (const operation of ["stopAgentExecution", "deleteAgentExecution"] as const) {
      await expect(theirs.agents[operation]({ agentExecutionId })).rejects.toMatchObject(hidden);
      await expect(strangers.agents[operation]({ agentExecutionId })).rejects.toMatchObject(hidden);
    }
    await share(Sharing.ORGANIZATION);
    for (const operation of ["stopAgentExecution", "deleteAgentExecution"] as const)
      await expect(theirs.agents[operation]({ agentExecutionId })).rejects.toMatchObject(denied);
    await share(Sharing.DISABLED);
    const { agentExecutionId: another } = await theirs.agents.startAgent({});
    await runs.agents.stopAgentExecution({ agentExecutionId: another });
    await runs.agents.deleteAgentExecution({ agentExecutionId: another });
  });
});

describe("the agents", () => {
  test("that an organization sees are its own and those of all, by name", async () => {
    const names = async (by: Runs) =>
      (await by.agents.listAgents({})).agents.map(({ name, own }) => [name, own]);
    expect(await names(runs)).toEqual([
      ["coder", true],
      ["reviewer", false],
    ]);
    expect(await names(strangers)).toEqual([["reviewer", false]]);
  });

  test("come in pages", async () => {
    const first = await runs.agents.listAgents({ pagination: { pageSize: 1 } });
    const token = first.pagination?.nextToken ?? "";
    const second = await agentsOf(made, member).listAgents({ pagination: { pageSize: 1, token } });
    expect([...first.agents, ...second.agents].map(({ id }) => id)).toEqual(agentIds);
    expect(second.pagination?.nextToken).toBe("");
  });
});
