import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  type RequestApprovalRequestSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentForm, type Work } from "#gen/runner/v1/work_pb.js";
import {
  ApprovalState,
  type ApprovalToolCallSchema,
  ToolKind,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  AgentApprovalPolicy_Effect as Effect,
  type AgentApprovalPolicy_RuleSchema as RuleSchema,
} from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { addAgent, inputsOf, type Runs, runsOn } from "../agent/agents.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { approvalsOf, colleague, decision } from "./approvals.ts";

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

type Request = Partial<MessageInitShape<typeof RequestApprovalRequestSchema>>;

/** Asks for a command, as the agent of a run. */
const ask = async (
  more: MessageInitShape<typeof ApprovalToolCallSchema> = {},
  { work = given, toolCallId = "call" }: { work?: Work; toolCallId?: string } = {},
) => {
  const value = { title: "Run make", kind: ToolKind.EXECUTE, tool: "shell", input: "make", ...more };
  const request: Request = { toolCallId, request: { case: "toolCall", value } };
  const { answer } = await runs.work.requestApproval({ ...runs.named(work), ...request });
  return answer;
};
const asked = async (...args: Parameters<typeof ask>) => {
  const answer = await ask(...args);
  if (answer.case !== "approval") throw new Error(`nobody was asked: ${answer.value?.reason}`);
  return answer.value;
};
const own = () => approvalsOf(made, caller);
const pending = async () =>
  (await own().listApprovals({ filter: { states: [ApprovalState.PENDING] } })).approvals;
const setRules = (...rules: MessageInitShape<typeof RuleSchema>[]) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies({
    organizationId: caller.organizationId,
    agentPolicy: { approvals: { rules } },
  });

describe("a request of an agent", () => {
  test("for what is harmless is allowed by the default, and asks nobody", async () => {
    expect(await ask({ kind: ToolKind.EDIT })).toMatchObject({
      case: "policy",
      value: { allowed: true, fieldPath: "agentPolicy.approvals" },
    });
    expect(await pending()).toEqual([]);
  });

  test("for a command asks people, and however often it is repeated, once", async () => {
    const first = await asked();
    expect(first).toMatchObject({ state: ApprovalState.PENDING, toolCallId: "call" });
    const repeated = await Promise.all([1, 2, 3].map(() => asked()));
    expect(new Set(repeated.map(({ approvalId }) => approvalId))).toEqual(new Set([first.approvalId]));
    const [approval] = await pending();
    expect(approval).toMatchObject({
      asker: { agentExecutionId: id, toolCallId: "call" },
      creator: { id: caller.subject.id },
      policyFieldPath: "agentPolicy.approvals",
    });
    expect((await runs.get(id))?.status?.pendingApprovalIds).toEqual([first.approvalId]);
    await own().decideApproval(decision(approval as never));
    // The response to the first request may have been lost.
    expect(await asked()).toMatchObject({ approvalId: first.approvalId, state: ApprovalState.APPROVED });
    expect(await pending()).toEqual([]);
  });

  test("is repeated by the next runner, which gets the outcome that the first one did not confirm", async () => {
    const first = await asked();
    const [approval] = await pending();
    await own().decideApproval(decision(approval as never));
    made.clock.now += LEASE_MS;
    await endExpiredLeases(made.store, made.clock.now);
    const again = await runs.takeOn();
    expect(await asked({}, { work: again })).toMatchObject({
      approvalId: first.approvalId,
      state: ApprovalState.APPROVED,
    });
    const stream = inputsOf(made, runner, again);
    expect((await stream.next())?.input?.input).toMatchObject({
      case: "approval",
      value: { approvalId: first.approvalId },
    });
    await stream.leave();
  });

  test("for something else under the id of a tool call takes the place of the one before", async () => {
    const first = await asked();
    const second = await asked({ input: "make install" });
    expect(second.approvalId).not.toBe(first.approvalId);
    expect((await pending()).map((each) => each.id)).toEqual([second.approvalId]);
    expect(await asked()).toMatchObject({ approvalId: first.approvalId, state: ApprovalState.CANCELLED });
  });

  test("is denied once the policy says so, also where people had approved it, and takes back what waits", async () => {
    const first = await asked();
    const other = await asked({ input: "make install" }, { toolCallId: "other" });
    await own().decideApproval(
      decision((await pending()).find((each) => each.id === first.approvalId) as never),
    );
    await setRules({ kinds: [ToolKind.EXECUTE], effect: Effect.DENY });
    expect(await ask()).toMatchObject({ case: "policy", value: { allowed: false } });
    expect((await pending()).map((each) => each.id)).toEqual([other.approvalId]);
    expect(await ask({ input: "make install" }, { toolCallId: "other" })).toMatchObject({ case: "policy" });
    expect(await pending()).toEqual([]);
  });

  test("is denied after sixteen others under its id", async () => {
    for (let at = 1; at <= 16; at++) await asked({ input: `make ${at}` });
    expect(await ask({ input: "make 17" })).toMatchObject({
      case: "policy",
      value: { allowed: false, reason: "the agent has asked 16 times under this id, which is the maximum" },
    });
    expect(await pending()).toEqual([]);
    expect(await asked({ input: "make 17" }, { toolCallId: "another" })).toMatchObject({
      toolCallId: "another",
    });
  });

  test("is refused with a text that reads differently from how it is written", async () => {
    for (const more of [{ title: "a\u202eb" }, { input: "a\u202eb" }, { locations: ["a\u202eb"] }])
      await expect(ask(more)).rejects.toMatchObject({ reason: ErrorReason.TEXT_DECEPTIVE });
  });

  test("asks for 32 things at the same time at most", async () => {
    for (let call = 1; call <= 32; call++) await asked({}, { toolCallId: `call ${call}` });
    expect(await ask({}, { toolCallId: "one more" })).toMatchObject({
      case: "policy",
      value: { allowed: false, reason: expect.stringContaining("32 approvals") },
    });
  });

  test("is cancelled with its turn, and not by a process that begins", async () => {
    const { approvalId } = await asked();
    const waits = { ...runs.named(given), state: State.WAITING };
    await runs.work.reportAgent(waits);
    expect(await pending()).toHaveLength(1);
    const stream = inputsOf(made, runner, given);
    const part = { input: { case: "text" as const, value: { content: "go on" } } };
    const input = { case: "userInput" as const, value: { id: "go on", inputs: [part] } };
    await runs.agents.sendToAgentExecution({ agentExecutionId: id, input });
    await stream.next();
    await stream.leave();
    const seenInputIds = ["go on"];
    await runs.work.reportAgent({ ...runs.named(given), state: State.RUNNING, seenInputIds });
    await runs.work.reportAgent(waits);
    expect((await own().getApproval({ approvalId })).approval).toMatchObject({
      state: ApprovalState.CANCELLED,
      reason: "the turn that asked is over",
    });
  });

  test("of a lost lease is refused", async () => {
    await expect(ask({}, { work: { ...given, fence: given.fence + 1n } })).rejects.toMatchObject({
      reason: ErrorReason.LEASE_LOST,
    });
  });

  test("that is a question is answered with JSON", async () => {
    const request = { case: "question" as const, value: { message: "Which port?\nAny will do." } };
    const name = { ...runs.named(given), toolCallId: "q", request };
    expect((await runs.work.requestApproval(name)).answer.case).toBe("approval");
    const [approval] = await pending();
    expect(approval).toMatchObject({ title: "Which port?" });
    for (const answerJson of ["8080", "[]", "{"]) {
      await expect(own().decideApproval(decision(approval as never, { answerJson }))).rejects.toMatchObject({
        reason: ErrorReason.VALUE_UNUSABLE,
      });
    }
    await own().decideApproval(decision(approval as never, { answerJson: '{ "port": 8080 }' }));
    const { answer } = await runs.work.requestApproval(name);
    expect(answer.value).toMatchObject({ state: ApprovalState.APPROVED, answerJson: '{"port":8080}' });
  });
});

describe("the root of a tree of runs decides", () => {
  const subagentOf = async (work: Work) => {
    await runs.work.startSubagent({ ...runs.named(work), prompt: "help", key: made.newId() });
    return runs.takeOn();
  };

  test("so that the agents below a person's run ask for what that would ask for", async () => {
    const below = await subagentOf(await subagentOf(given));
    expect(await ask({}, { work: below })).toMatchObject({ case: "approval" });
  });

  test("and those below the run of a service account ask nobody", async () => {
    const subject = create(SubjectSchema, { id: made.newId(), principal: Principal.SERVICE_ACCOUNT });
    const change = (body: string) => {
      const execution = JSON.parse(body);
      execution.metadata.creator = { id: subject.id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
      return JSON.stringify(execution);
    };
    const below = await subagentOf(given);
    await made.store.write(
      SYSTEM,
      "test",
      async ({ db }) => {
        const rows = builderOf(db).selectFrom("agent_execution").select("body").where("id", "=", id);
        const { body } = await rows.executeTakeFirstOrThrow();
        const update = builderOf(db)
          .updateTable("agent_execution")
          .set({ body: change(body) });
        await update.where("id", "=", id).execute();
      },
      within(caller),
    );
    expect(await ask({}, { work: below })).toMatchObject({ case: "policy", value: { allowed: true } });
  });
});

describe("a sub-agent that cannot ask", () => {
  const start = (agentId: string) =>
    runs.work.startSubagent({ ...runs.named(given), prompt: "help", agentId, key: made.newId() });
  let text: string;
  beforeEach(async () => {
    text = await addAgent(made, null, { name: "text" });
  });

  test("is refused where its parent would have to ask", async () => {
    const asking = await addAgent(made, null, { name: "asking", form: AgentForm.JSON_LINES });
    ({ given } = await runs.running({ agentId: asking }));
    await expect(start(text)).rejects.toMatchObject({
      reason: ErrorReason.POLICY_DENIED,
      decision: { fieldPath: "agentPolicy.approvals" },
    });
    expect((await start("")).agentExecutionId).not.toBe("");
    await setRules({ effect: Effect.ALLOW });
    expect((await start(text)).agentExecutionId).not.toBe("");
    await setRules({ kinds: [ToolKind.FETCH], effect: Effect.DENY }, { effect: Effect.ALLOW });
    await expect(start(text)).rejects.toMatchObject({
      decision: { fieldPath: "agentPolicy.approvals.rules[0]" },
    });
  });

  test("goes on below one that cannot ask either", async () => {
    expect((await start(text)).agentExecutionId).not.toBe("");
  });
});

describe("the policy", () => {
  test("denies with its reason and the field that decided", async () => {
    await setRules({ kinds: [ToolKind.EXECUTE], tool: "sh*", effect: Effect.DENY, reason: "no shells" });
    expect(await ask()).toMatchObject({
      case: "policy",
      value: {
        allowed: false,
        reason: "no shells",
        fieldPath: "agentPolicy.approvals.rules[0]",
        decision: { fieldPath: "agentPolicy.approvals.rules[0]", setBy: { id: caller.subject.id } },
      },
    });
  });

  test("demands others than the one who started the run", async () => {
    const ann = await colleague(made, caller, "ann@example.org");
    const ben = await colleague(made, caller, "ben@example.org");
    const userIds = [ann.subject.id, ben.subject.id];
    const deciders = { who: Who.USERS, userIds, required: 2 };
    await setRules({ kinds: [ToolKind.EXECUTE], effect: Effect.ASK, deciders });
    const { approvalId } = await asked();
    const [approval] = await pending();
    expect(approval).toMatchObject({ deciders, policyFieldPath: "agentPolicy.approvals.rules[0]" });
    for (const each of [ann, ben]) await approvalsOf(made, each).decideApproval(decision(approval as never));
    expect(await asked()).toMatchObject({ approvalId, state: ApprovalState.APPROVED });
  });

  test.each([
    [
      "administrators but the starter, of whom there is one",
      { who: Who.ADMINISTRATORS, excludesStarter: true },
    ],
    ["somebody who is no member", { who: Who.USERS, userIds: ["0190c0de-0000-7000-8000-000000000000"] }],
  ])("is refused that nobody could satisfy: %s", async (_, deciders) => {
    await expect(setRules({ effect: Effect.ASK, deciders })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: "agentPolicy.approvals.rules[0].deciders" },
    });
  });

  test("is refused that names only somebody whose account is blocked", async () => {
    const ann = await colleague(made, caller, "ann@example.org");
    await made.store.write(SYSTEM, "test", async ({ db }) => {
      const accounts = builderOf(db).updateTable("account").set({ blocked_at: 1 });
      await accounts.where("id", "=", ann.accountId).execute();
    });
    const deciders = { who: Who.USERS, userIds: [ann.subject.id] };
    await expect(setRules({ effect: Effect.ASK, deciders })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
  });
});
