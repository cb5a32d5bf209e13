import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  leaseAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { addMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

type Body = Answer["body"];

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const start = (request: object = {}, token = home.token) =>
  post(server, "AgentService/StartAgent", request, token);
const started = async (request: object = {}, token = home.token): Promise<string> =>
  (await succeeded(start(request, token))).agentExecutionId;
const get = (agentExecutionId: string, token = home.token) =>
  post(server, "AgentService/GetAgentExecution", { agentExecutionId }, token);
const run = async (id: string): Promise<Body> => (await succeeded(get(id))).agentExecution;
const of = (operation: string, agentExecutionId: string, token = home.token) =>
  post(server, `AgentService/${operation}`, { agentExecutionId }, token);
const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];

describe("the run of another", () => {
  const serviceAccount = async (): Promise<string> => {
    const validUntil = "2999-12-31T00:00:00Z";
    const made = await succeeded(
      home.call("ServiceAccountService/CreateServiceAccount", { name: "Robot", validUntil }),
    );
    const { id: serviceAccountId } = made.serviceAccount;
    return (
      await succeeded(home.call("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId }))
    ).token;
  };

  test("is read by each role as the sharing policy says", async () => {
    const { id } = await startLeasedAgentExecution(home);
    const stranger = await createAgentFixture(server);
    const readers: [string, string, boolean][] = [
      ["administrator", home.token, true],
      ["runner", home.runner.token, true],
      ["member", home.member.token, false],
      ["service account", await serviceAccount(), false],
    ];
    const read = async (token: string) => {
      const seen = [await get(id, token), await of("ListAgentInputs", id, token)];
      return seen.map(({ status, body }) => [status, body.code]);
    };
    const found = [200, undefined];
    const missing = [404, "not_found"];
    for (const policy of ["DISABLED", "ORGANIZATION"]) {
      await home.set({ agentPolicy: { conversationSharingPolicy: `CONVERSATION_SHARING_POLICY_${policy}` } });
      const isShared = policy === "ORGANIZATION";
      for (const [role, token, always] of readers) {
        const expected = always || isShared ? found : missing;
        if (role === "runner") {
          expect([role, (await get(id, token)).status]).toEqual([role, 200]);
          continue;
        }
        expect([role, policy, await read(token)]).toEqual([role, policy, [expected, expected]]);
        const { body } = await post(server, "AgentService/ListAgentExecutions", {}, token);
        expect(body.agentExecutions.length).toBe(always || isShared ? 1 : 0);
      }
      expect(await read(stranger.token)).toEqual([missing, missing]);
      expect((await get(id, stranger.runner.token)).status).toBe(404);
    }
  });

  test("is changed by its creator and administrators, and is not there for those who may not read it", async () => {
    const { organizationId } = home;
    const second = await addMember(server, { organizationId, email: `second-${v7()}@example.org` });
    const id = await started({}, home.member.token);
    const refusals = () => {
      const send = { userInput: { inputs: [{ text: { content: "x" } }] } };
      const operations: readonly [string, object][] = [
        ["AgentService/SendToAgentExecution", { agentExecutionId: id, ...send }],
        ["AgentService/StopAgentExecution", { agentExecutionId: id }],
        ["AgentService/DeleteAgentExecution", { agentExecutionId: id }],
        ["AgentService/ForkAgentExecution", { agentExecutionId: id }],
        ["AgentService/StartAgent", { resumeFrom: id }],
        ["AgentReviewService/CreateAgentReviewDraft", { agentExecutionId: id, summary: "No." }],
        ["AgentReviewService/ListAgentReviewDrafts", { agentExecutionId: id }],
      ];
      return Promise.all(
        operations.map(async ([operation, body]) => {
          const { status, body: answer } = await post(server, operation, body, second.token);
          return [operation, status, answer.code];
        }),
      );
    };
    const shareWith = (policy: string) =>
      post(
        server,
        "OrganizationService/UpdateOrganizationPolicies",
        {
          organizationId,
          agentPolicy: { conversationSharingPolicy: `CONVERSATION_SHARING_POLICY_${policy}` },
        },
        home.token,
      );
    for (const [operation, ...answer] of await refusals())
      expect([operation, ...answer]).toEqual([operation, 404, "not_found"]);
    await succeeded(shareWith("ORGANIZATION"));
    for (const [operation, ...answer] of await refusals())
      expect([operation, ...answer]).toEqual([operation, 403, "permission_denied"]);
    await succeeded(shareWith("UNSPECIFIED"));
    expect(refusal(await of("DeleteAgentExecution", id, home.member.token))).toEqual([
      400,
      "failed_precondition",
      "PHASE_UNSUITABLE",
    ]);
    await succeeded(of("StopAgentExecution", id, home.member.token));
    await succeeded(of("StopAgentExecution", id));
    expect((await run(id)).status.phase).toBe("PHASE_STOPPED");
    await succeeded(of("DeleteAgentExecution", id));
    expect(refusal(await of("DeleteAgentExecution", id))).toEqual([404, "not_found", "NOT_FOUND"]);
  });
});

describe("a run that a runner has", () => {
  test("is asked to stop, takes no input any more, and has stopped at the runner's word", async () => {
    const held = await startLeasedAgentExecution(home);
    await held.say("first");
    await succeeded(of("StopAgentExecution", held.id));
    expect((await succeeded(held.report())).stop).toBe(true);
    expect(await held.get()).toMatchObject({
      spec: { desiredPhase: "PHASE_STOPPED" },
      status: { phase: "PHASE_RUNNING" },
    });
    await succeeded(home.runner.finish(held.work, "OUTCOME_STOPPED"));
    expect((await held.get()).status.phase).toBe("PHASE_STOPPED");
    const late = await held.send({ userInput: { inputs: [{ text: { content: "late" } }] } });
    expect(refusal(late)).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
    expect(await held.receipts()).toEqual({ first: "QUEUED" });
  });

  test("takes sub-agents along", async () => {
    const held = await startLeasedAgentExecution(home);
    const started = await succeeded(
      home.runner.agent("StartSubagent", held.work, { prompt: "look", name: "Scout" }),
    );
    const child = leasedAgentExecution(
      home,
      started.agentExecutionId,
      await leaseAgentExecution(home.runner, started.agentExecutionId),
    );
    await succeeded(child.report({ currentActivity: "reads the log" }));
    expect((await held.get()).status.subagents).toMatchObject([
      {
        id: child.id,
        parentId: held.id,
        name: "Scout",
        currentActivity: "reads the log",
        phase: "PHASE_RUNNING",
      },
    ]);
    await succeeded(of("StopAgentExecution", held.id));
    expect((await succeeded(child.report())).stop).toBe(true);
  });

  test("tells the caller that watches it what its sub-agents do", async () => {
    const held = await startLeasedAgentExecution(home);
    const watched = held.watch();
    const seen = (activity: string) =>
      watched.find(
        ({ news }) =>
          news.case === "agentExecution" &&
          news.value.status?.subagents.some(({ currentActivity }) => currentActivity === activity) === true,
      );
    const { agentExecutionId } = await succeeded(
      home.runner.agent("StartSubagent", held.work, { prompt: "look" }),
    );
    await seen("");
    const child = leasedAgentExecution(
      home,
      agentExecutionId,
      await leaseAgentExecution(home.runner, agentExecutionId),
    );
    await succeeded(child.report({ currentActivity: "reads the log" }));
    await seen("reads the log");
    watched.cancel();
  });

  test("lets its agent act as the environment that it shares until it ends, or has another lease", async () => {
    const first = await startLeasedAgentExecution(home);
    const { environmentId } = first;
    const sharing = await started({ codeContext: { environmentId } });
    const other = await leaseAgentExecution(home.runner, sharing);
    const whoIs = async ({ environmentToken }: Body) =>
      (await post(server, "IdentityService/GetAuthenticatedIdentity", {}, environmentToken)).body.subject?.id;
    expect(await Promise.all([first.work, other].map(whoIs))).toEqual([environmentId, environmentId]);
    await succeeded(home.runner.finish(first.work, "OUTCOME_RELEASED"));
    const again = await leaseAgentExecution(home.runner, first.id);
    expect(await whoIs(first.work)).toBeUndefined();
    expect(await Promise.all([again, other].map(whoIs))).toEqual([environmentId, environmentId]);
    await succeeded(home.runner.finish(again));
    expect(await Promise.all([again, other].map(whoIs))).toEqual([undefined, environmentId]);
  });

  test("of a blocked account is cut off at once: reports are refused, and the record names it", async () => {
    const { accountId, token } = home.member;
    const id = await started({}, token);
    const environment = await home.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    await succeeded(home.runner.report(environment, { environment: { phase: "ENVIRONMENT_PHASE_RUNNING" } }));
    await succeeded(home.runner.finish(environment));
    const held = leasedAgentExecution(home, id, await leaseAgentExecution(home.runner, id));
    await succeeded(home.call("AccountService/BlockAccount", { accountId, reason: "left the team" }));
    const blocked = [403, "permission_denied", "ACCOUNT_BLOCKED"];
    expect(refusal(await held.report())).toEqual(blocked);
    expect(refusal(await home.runner.renew(held.work))).toEqual(blocked);
    expect(refusal(await home.runner.finish(held.work))).toEqual(blocked);
    expect((await held.get()).status).toMatchObject({
      phase: "PHASE_STOPPED",
      failureReason: "AGENT_EXECUTION_FAILURE_REASON_SERVICE",
      failureMessage: "the account of its creator was blocked",
    });
    const { entries } = await succeeded(
      home.call("EventService/ListAuditLogs", { pagination: { pageSize: 100 } }),
    );
    const row = entries.find((each: Body) => each.subjectId === accountId && each.reason === "left the team");
    expect(JSON.stringify(row)).toContain(id);
    await succeeded(home.call("AccountService/UnblockAccount", { accountId }));
    expect(refusal(await held.report())).not.toEqual(blocked);
    expect((await held.get()).status.phase).toBe("PHASE_STOPPED");
  });
});
