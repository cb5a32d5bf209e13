import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { AccountService as AccountContract } from "#gen/service/v1/account_service_pb.js";
import { ApprovalState, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { DecideApprovalRequest_Decision as Decision } from "#gen/service/v1/approval_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ConversationSharingPolicy } from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { expireApprovals } from "../../../src/jobs/agent-timers.ts";
import { AccountService } from "../../../src/services/access/account-service.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { ServiceAccountService } from "../../../src/services/access/service-account-service.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { addAgent, inputsOf, type Runs, runsOn } from "../agent/agents.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { approvalsOf, ask, colleague, decision } from "./approvals.ts";

const { PENDING, APPROVED, DENIED, EXPIRED, CANCELLED } = ApprovalState;
const PHASE_UNSUITABLE = { reason: ErrorReason.PHASE_UNSUITABLE };
const NOT_FOUND = { reason: ErrorReason.NOT_FOUND };
const PERMISSION_DENIED = { reason: ErrorReason.PERMISSION_DENIED };

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
let id: string;
let given: Work;
beforeEach(async () => {
  made = openTestStore();
  await addAgent(made, null, { isDefault: true });
  caller = await made.createOrganization("ours");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  ({ id, given } = await runs.running());
});
afterEach(() => made.close());

const own = () => approvalsOf(made, caller);
const stateOf = async (approvalId: string) => (await own().getApproval({ approvalId })).approval?.state;
const operationsOn = async (approvalId: string) => {
  const { audit, events } = await made.history(caller);
  const recorded = audit.filter(({ subject_id }) => subject_id === approvalId);
  expect(events.filter(({ resource_id }) => resource_id === approvalId)).toHaveLength(recorded.length);
  return recorded.map(({ operation, reason }) => [operation, reason]);
};
const outcomesOf = async (agentExecutionId: string) => {
  const { inputs } = await runs.agents.listAgentInputs({ agentExecutionId, includePast: true });
  return inputs.flatMap(({ input }) => (input.case === "approval" ? [input.value] : []));
};

describe("an approval", () => {
  test("tells what is asked, and the run that it waits for it", async () => {
    const asked = await ask(made, caller, id);
    expect(asked).toMatchObject({
      state: PENDING,
      title: "Remove the folder build",
      requestJson:
        '{"input":"{\\"command\\": \\"rm -r build\\"}","kind":"TOOL_KIND_EXECUTE","title":"Remove the folder build","tool":"shell"}',
      digest: "0de2aad1a4ef87deb9aec79340596ef153c63cd699e3c60574fa084d0a821732",
      deciders: { who: Who.STARTER_AND_ADMINISTRATORS, required: 1 },
    });
    expect((await runs.get(id))?.status?.pendingApprovalIds).toEqual([asked.id]);
    await own().decideApproval(decision(asked));
    expect((await runs.get(id))?.status?.pendingApprovalIds).toEqual([]);
  });

  test("that is approved says so to the run, with the option that allows once", async () => {
    const asked = await ask(made, caller, id);
    const { approval } = await own().decideApproval(decision(asked, { reason: "it can be built again" }));
    expect(approval).toMatchObject({ state: APPROVED, optionId: "once", decisions: [{ approved: true }] });
    expect(await operationsOn(asked.id)).toEqual([
      ["approval/asked", ""],
      ["approval/approved", "it can be built again"],
    ]);
    expect(await outcomesOf(id)).toMatchObject([
      { approvalId: asked.id, toolCallId: "call", digest: asked.digest, state: APPROVED, optionId: "once" },
    ]);
  });

  test("that is denied says why", async () => {
    const asked = await ask(made, caller, id);
    await own().decideApproval(decision(asked, { decision: Decision.DENY, reason: "not today" }));
    expect(await outcomesOf(id)).toMatchObject([{ state: DENIED, optionId: "never", reason: "not today" }]);
    expect((await operationsOn(asked.id)).at(-1)).toEqual(["approval/denied", "not today"]);
  });

  test("keeps what is asked out of the audit log", async () => {
    const asked = await ask(made, caller, id);
    await own().decideApproval(decision(asked));
    const { audit } = await made.history(caller);
    const recorded = audit.filter(({ subject_id }) => subject_id === asked.id);
    expect(JSON.stringify(recorded)).toContain(asked.digest);
    expect(JSON.stringify(recorded)).not.toContain("rm -r build");
  });

  test("is decided by one of 100 decisions at the same time", async () => {
    const asked = await ask(made, caller, id);
    const decisions = Array.from({ length: 100 }, (_, index) =>
      own().decideApproval(decision(asked, { decision: index % 2 === 0 ? Decision.APPROVE : Decision.DENY })),
    );
    const settled = await Promise.allSettled(decisions);
    const refused = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(refused).toHaveLength(99);
    for (const error of refused) expect(error).toMatchObject(PHASE_UNSUITABLE);
    expect((await own().getApproval({ approvalId: asked.id })).approval?.decisions).toHaveLength(1);
    expect(await outcomesOf(id)).toHaveLength(1);
  });

  test("is not decided by the digest of something else", async () => {
    const asked = await ask(made, caller, id);
    await expect(own().decideApproval(decision(asked, { digest: "0".repeat(64) }))).rejects.toMatchObject({
      reason: ErrorReason.APPROVAL_CHANGED,
      metadata: { digest: asked.digest },
    });
    expect(await stateOf(asked.id)).toBe(PENDING);
  });

  test.each([
    ["no option of it", { optionId: "maybe" }],
    ["an option that denies", { optionId: "never" }],
    ["an answer, though it is no question", { answerJson: "{}" }],
  ])("is not approved with %s", async (_, other) => {
    const asked = await ask(made, caller, id);
    await expect(own().decideApproval(decision(asked, other))).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
  });

  test("is denied after 24 hours, and decided by nobody any more", async () => {
    const asked = await ask(made, caller, id);
    made.clock.now += DAY_MS - 1;
    await expireApprovals(made.store, made.clock.now);
    expect(await stateOf(asked.id)).toBe(PENDING);
    made.clock.now += 1;
    // Before the job has come.
    await expect(own().decideApproval(decision(asked))).rejects.toMatchObject(PHASE_UNSUITABLE);
    await Promise.all([1, 2, 3].map(() => expireApprovals(made.store, made.clock.now)));
    expect(await stateOf(asked.id)).toBe(EXPIRED);
    await expect(own().decideApproval(decision(asked))).rejects.toMatchObject(PHASE_UNSUITABLE);
    expect(await outcomesOf(id)).toMatchObject([{ state: EXPIRED, reason: "nobody decided in time" }]);
    expect((await operationsOn(asked.id)).at(-1)).toEqual(["approval/expired", "nobody decided in time"]);
  });

  test("ends with its run, and goes with it", async () => {
    const asked = await ask(made, caller, id);
    await runs.finish(given, Outcome.DONE);
    expect(await stateOf(asked.id)).toBe(CANCELLED);
    expect(await outcomesOf(id)).toEqual([]);
    await expect(own().decideApproval(decision(asked))).rejects.toMatchObject(PHASE_UNSUITABLE);
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    await expect(own().getApproval({ approvalId: asked.id })).rejects.toMatchObject(NOT_FOUND);
  });

  test("is cancelled as soon as its run is asked to stop", async () => {
    const asked = await ask(made, caller, id);
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await stateOf(asked.id)).toBe(CANCELLED);
  });

  test("is cancelled when the account is blocked that started its run", async () => {
    const member = await colleague(made, caller, "ann@example.org");
    const theirs = runsOn(made, member, runner);
    const run = await theirs.running();
    const asked = await ask(made, member, run.id);
    const accounts = operationsOf(AccountContract, new AccountService(made.deps), caller);
    await accounts.blockAccount({ accountId: member.accountId, reason: "left" });
    expect(await stateOf(asked.id)).toBe(CANCELLED);
    await expect(approvalsOf(made, member).decideApproval(decision(asked))).rejects.toMatchObject({
      reason: ErrorReason.ACCOUNT_BLOCKED,
    });
  });
});

describe("who may decide", () => {
  test("are those who may send to the run; others do not find it, or are refused where runs are shared", async () => {
    const member = await colleague(made, caller, "ann@example.org");
    const asked = await ask(made, caller, id);
    const theirs = approvalsOf(made, member);
    await expect(theirs.decideApproval(decision(asked))).rejects.toMatchObject(NOT_FOUND);
    expect((await theirs.listApprovals({})).approvals).toEqual([]);
    const organizations = operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
    await organizations.updateOrganizationPolicies({
      organizationId: caller.organizationId,
      agentPolicy: { conversationSharingPolicy: ConversationSharingPolicy.ORGANIZATION },
    });
    expect((await theirs.listApprovals({})).approvals).toMatchObject([{ id: asked.id }]);
    await expect(theirs.decideApproval(decision(asked))).rejects.toMatchObject(PERMISSION_DENIED);
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    await approvalsOf(made, boss).decideApproval(decision(asked));
    expect(await stateOf(asked.id)).toBe(APPROVED);
  });

  test("can be the users that it names, who then read it, and nobody else", async () => {
    const [ann, ben] = [
      await colleague(made, caller, "ann@example.org"),
      await colleague(made, caller, "ben@example.org"),
    ];
    const deciders = { who: Who.USERS, userIds: [ann.subject.id] };
    const asked = await ask(made, caller, id, { deciders });
    await expect(own().decideApproval(decision(asked))).rejects.toMatchObject(PERMISSION_DENIED);
    await expect(approvalsOf(made, ben).decideApproval(decision(asked))).rejects.toMatchObject(NOT_FOUND);
    expect((await approvalsOf(made, ann).listApprovals({})).approvals).toHaveLength(1);
    await approvalsOf(made, ann).decideApproval(decision(asked));
    expect(await stateOf(asked.id)).toBe(APPROVED);
  });

  test("can leave out the one who started the run, an administrator too", async () => {
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    const deciders = { who: Who.ADMINISTRATORS, excludesStarter: true };
    const asked = await ask(made, caller, id, { deciders });
    await expect(own().decideApproval(decision(asked))).rejects.toMatchObject(PERMISSION_DENIED);
    await approvalsOf(made, boss).decideApproval(decision(asked));
    expect(await stateOf(asked.id)).toBe(APPROVED);
  });

  test("can be two of several, each once; who has left since does not count", async () => {
    const [ann, ben, eve] = [
      await colleague(made, caller, "ann@example.org"),
      await colleague(made, caller, "ben@example.org"),
      await colleague(made, caller, "eve@example.org"),
    ];
    const userIds = [ann, ben, eve].map(({ subject }) => subject.id);
    const asked = await ask(made, caller, id, { deciders: { who: Who.USERS, userIds, required: 2 } });
    await approvalsOf(made, ann).decideApproval(decision(asked));
    await expect(approvalsOf(made, ann).decideApproval(decision(asked))).rejects.toMatchObject(
      PHASE_UNSUITABLE,
    );
    expect(await outcomesOf(id)).toEqual([]);
    const organizations = operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
    const { organizationId } = caller;
    await organizations.removeMember({ organizationId, userId: ann.subject.id });
    await approvalsOf(made, ben).decideApproval(decision(asked));
    expect(await stateOf(asked.id)).toBe(PENDING);
    await approvalsOf(made, eve).decideApproval(decision(asked));
    expect(await stateOf(asked.id)).toBe(APPROVED);
    expect(await outcomesOf(id)).toHaveLength(1);
  });

  test("can be two, of whom a service account counts only as long as it may act", async () => {
    const accounts = operationsOf(ServiceAccountContract, new ServiceAccountService(made.deps), caller);
    const validUntil = { seconds: BigInt(made.clock.now / 1000 + 3600) };
    const { serviceAccount } = await accounts.createServiceAccount({ name: "Nightly", validUntil });
    const subject = create(SubjectSchema, {
      id: serviceAccount?.id ?? "",
      principal: Principal.SERVICE_ACCOUNT,
    });
    const itself = { ...caller, subject, role: "service_account", accountId: "" } as const;
    const askedBy = (toolCallId: string) => ask(made, itself, id, { toolCallId, deciders: { required: 2 } });
    const inTime = await askedBy("in time");
    await approvalsOf(made, itself).decideApproval(decision(inTime));
    await own().decideApproval(decision(inTime));
    expect(await stateOf(inTime.id)).toBe(APPROVED);
    const late = await askedBy("late");
    await approvalsOf(made, itself).decideApproval(decision(late));
    made.clock.now += 3_601_000;
    await own().decideApproval(decision(late));
    expect(await stateOf(late.id)).toBe(PENDING);
  });

  test("denies alone, where two must approve", async () => {
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    const asked = await ask(made, caller, id, { deciders: { required: 2 } });
    await own().decideApproval(decision(asked));
    await approvalsOf(made, boss).decideApproval(decision(asked, { decision: Decision.DENY }));
    expect(await stateOf(asked.id)).toBe(DENIED);
  });
});

describe("the list", () => {
  test("tells the newest first, by state, run and page", async () => {
    const [first, second] = [await ask(made, caller, id), await ask(made, caller, id, { toolCallId: "b" })];
    await own().decideApproval(decision(first));
    const idsOf = async (request: Parameters<ReturnType<typeof own>["listApprovals"]>[0]) =>
      (await own().listApprovals(request)).approvals.map((each) => each.id);
    expect(await idsOf({})).toEqual([second.id, first.id]);
    expect(await idsOf({ filter: { states: [PENDING] } })).toEqual([second.id]);
    expect(await idsOf({ filter: { states: [APPROVED, PENDING] } })).toEqual([second.id, first.id]);
    expect(await idsOf({ filter: { agentExecutionIds: [id] } })).toHaveLength(2);
    expect(await idsOf({ filter: { agentExecutionIds: [made.newId()] } })).toEqual([]);
    expect(await idsOf({ filter: { workflowExecutionIds: [id] } })).toEqual([]);
    const page = await own().listApprovals({ pagination: { pageSize: 1 } });
    const next = { pagination: { pageSize: 1, token: page.pagination?.nextToken ?? "" } };
    expect([page.approvals[0]?.id, ...(await idsOf(next))]).toEqual([second.id, first.id]);
  });
});

test("an outcome reaches the runner in the turn, before what is queued, and again until it is seen", async () => {
  const say = (text: string) => {
    const part = { input: { case: "text" as const, value: { content: text } } };
    const input = { case: "userInput" as const, value: { id: text, inputs: [part] } };
    return runs.agents.sendToAgentExecution({ agentExecutionId: id, input });
  };
  await say("first");
  await say("later");
  const stream = inputsOf(made, runner, given);
  expect((await stream.next())?.input?.id).toBe("first");
  const report = { ...runs.named(given), state: State.RUNNING };
  await runs.work.reportAgent({ ...report, seenInputIds: ["first"] });
  const asked = await ask(made, caller, id);
  await own().decideApproval(decision(asked));
  const outcome = await stream.next();
  expect(outcome).toMatchObject({
    input: { input: { case: "approval", value: { approvalId: asked.id, state: APPROVED } } },
    steer: true,
  });
  await stream.leave();
  const again = inputsOf(made, runner, given);
  expect(await again.next()).toEqual(outcome);
  await runs.work.reportAgent({ ...report, seenInputIds: [outcome?.input?.id ?? ""] });
  // The turn is still that of the first message.
  const block = { case: "text", value: { content: "done" } } as const;
  await runs.work.reportAgent({ ...report, blocks: [{ sequence: 1n, block }] });
  const watched = runs.agents.listAgentInputs({ agentExecutionId: id });
  expect((await watched).inputs.map((input) => input.id)).toEqual(["later"]);
  await runs.work.reportAgent({ ...runs.named(given), state: State.WAITING });
  expect((await again.next())?.input?.id).toBe("later");
  await again.leave();
});
