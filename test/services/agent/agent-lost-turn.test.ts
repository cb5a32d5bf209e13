import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  AgentMode,
  AgentExecution_Phase as Phase,
  AgentInputReceipt as Receipt,
} from "#gen/service/v1/agent_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { addAgent, agentsOf, handleOf, inputsOf, type Runs, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, caller.organizationId, { isDefault: true });
});
afterEach(() => made.close());

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1]);

const loseLease = async () => {
  made.clock.now += LEASE_MS;
  await endExpiredLeases(made.store, made.clock.now);
};
const send = (agentExecutionId: string, id: string, more: object = {}) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: {
      case: "userInput",
      value: {
        id,
        inputs: [
          { input: { case: "text", value: { content: id } } },
          { input: { case: "image", value: { data: PNG, mimeType: "image/png" } } },
        ],
      },
    },
    ...more,
  });
const control = (agentExecutionId: string, order: "retryTurn" | "goOn", more: object = {}) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: { case: "controlInput", value: { control: { case: order, value: {} } } },
    ...more,
  });
const steer = (agentExecutionId: string, userInputId: string) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: {
      case: "controlInput",
      value: { control: { case: "steerQueuedMessage", value: { userInputId } } },
    },
  });
const report = (given: Work, state: State, ...seenInputIds: string[]) =>
  runs.work.reportAgent({ ...runs.named(given), state, seenInputIds });
const lostTurn = async (id: string) => (await runs.get(id))?.status?.lostTurn;
const receipts = async (agentExecutionId: string) => {
  const { inputs } = await runs.agents.listAgentInputs({ agentExecutionId, includePast: true });
  return inputs.map(({ id, receipt }) => `${id} ${Receipt[receipt]}`);
};
/** Number of the inputs whose options or images are stored. */
const storedData = async (id: string) => {
  const executionId = await handleOf(made, caller, id);
  const db = builderOf(made.store.reader);
  const rows = await db
    .selectFrom("agent_input")
    .select("turn")
    .where("execution_id", "=", executionId)
    .execute();
  const images = await db
    .selectFrom("agent_input_image")
    .select("position")
    .where("execution_id", "=", executionId)
    .execute();
  return [rows.filter(({ turn }) => turn !== "{}").length, images.length];
};
/** The ids of so many inputs as a runner is handed them, with the modes and the images of each. */
async function handed(given: Work, count: number): Promise<string[]> {
  const stream = inputsOf(made, runner, given);
  const got: string[] = [];
  while (got.length < count) {
    const next = await stream.next();
    const input = next?.input?.input;
    const parts = input?.case === "userInput" ? input.value.inputs : [];
    const bytes = parts.map(({ input: part }) => (part.case === "image" ? part.value.data.length : 0));
    const modes = next?.turnOptions?.modes.map((mode) => AgentMode[mode]) ?? [];
    got.push([next?.input?.id, Math.max(0, ...bytes), ...modes].join(" "));
  }
  await stream.leave();
  return got;
}

/** A run that has lost a turn of two inputs, with a third that waits. */
async function withLostTurn(holdAfterLostTurn: boolean): Promise<string> {
  const { id, given } = await runs.running({ holdAfterLostTurn });
  await report(given, State.WAITING);
  await send(id, "before");
  await handed(given, 1);
  await report(given, State.RUNNING, "before");
  await report(given, State.WAITING);
  await send(id, "lost", { turnOptions: { modes: [AgentMode.PLANNING] } });
  await handed(given, 1);
  await report(given, State.RUNNING, "lost");
  await send(id, "steered");
  await steer(id, "steered");
  await handed(given, 1);
  await report(given, State.RUNNING, "steered");
  await send(id, "waiting");
  await loseLease();
  return id;
}

test("a lost turn is handed again, whole and ahead of the queue, when somebody asks for it", async () => {
  const id = await withLostTurn(true);
  const lostAt = made.clock.now;
  expect(await lostTurn(id)).toMatchObject({
    inputId: "lost",
    holdsQueue: true,
    lostAt: { seconds: BigInt(Math.floor(lostAt / 1_000)) },
  });
  const given = await runs.takeOn();
  await report(given, State.WAITING);
  await control(id, "retryTurn");
  expect(await lostTurn(id)).toBeUndefined();
  expect(await receipts(id)).toEqual([
    "before SEEN",
    "lost DELIVERED",
    "steered DELIVERED",
    "waiting QUEUED",
  ]);
  expect(await handed(given, 2)).toEqual(["lost 9 PLANNING", "steered 9"]);
  await report(given, State.RUNNING, "lost", "steered");
  await report(given, State.WAITING);
  expect(await handed(given, 1)).toEqual(["waiting 9"]);
  expect(await receipts(id)).toEqual(["before SEEN", "lost SEEN", "steered SEEN", "waiting DELIVERED"]);
  // Only what waits is stored with its image.
  expect(await storedData(id)).toEqual([0, 1]);
});

test("a queue that holds hands out nothing, also not what was delivered, until somebody decides", async () => {
  const { id, given } = await runs.running({ holdAfterLostTurn: true });
  await report(given, State.WAITING);
  await send(id, "lost");
  await handed(given, 1);
  await report(given, State.RUNNING, "lost");
  await send(id, "unseen");
  await steer(id, "unseen");
  await handed(given, 1);
  await loseLease();
  const again = await runs.takeOn();
  await report(again, State.WAITING);
  await send(id, "later");
  const stream = inputsOf(made, runner, again);
  let isHanded = false;
  const next = stream.next().finally(() => {
    isHanded = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  await send(id, "last");
  await new Promise((resolve) => setImmediate(resolve));
  expect(isHanded).toBe(false);
  await control(id, "retryTurn");
  expect((await next)?.input?.id).toBe("lost");
  expect((await stream.next())?.input?.id).toBe("unseen");
  await stream.leave();
});

test("a run goes on without the lost turn where somebody says so, and keeps nothing of it", async () => {
  const id = await withLostTurn(true);
  expect(await storedData(id)).toEqual([1, 3]);
  await control(id, "goOn");
  expect(await storedData(id)).toEqual([0, 1]);
  expect(await handed(await runs.takeOn(), 1)).toEqual(["waiting 9"]);
  expect(await receipts(id)).toEqual(["before SEEN", "lost SEEN", "steered SEEN", "waiting DELIVERED"]);
});

test("without the option the queue goes on, and the turn can be asked for again behind it", async () => {
  const id = await withLostTurn(false);
  expect(await lostTurn(id)).toMatchObject({ inputId: "lost", holdsQueue: false });
  const given = await runs.takeOn();
  expect(await handed(given, 1)).toEqual(["waiting 9"]);
  const refused = { reason: ErrorReason.PHASE_UNSUITABLE };
  await expect(control(id, "retryTurn")).rejects.toMatchObject(refused);
  await report(given, State.RUNNING, "waiting");
  await expect(control(id, "retryTurn")).rejects.toMatchObject(refused);
  await report(given, State.WAITING);
  expect(await storedData(id)).toEqual([1, 2]);
  await control(id, "retryTurn");
  expect(await handed(given, 2)).toEqual(["lost 9 PLANNING", "steered 9"]);
});

test("an attempt that is lost, too, is the lost turn from then on", async () => {
  const id = await withLostTurn(true);
  await control(id, "retryTurn");
  const second = await runs.takeOn();
  await handed(second, 2);
  await report(second, State.RUNNING, "lost", "steered");
  await loseLease();
  expect(await lostTurn(id)).toMatchObject({ inputId: "lost", holdsQueue: true });
  await control(id, "retryTurn");
  const third = await runs.takeOn();
  expect(await handed(third, 2)).toEqual(["lost 9 PLANNING", "steered 9"]);
});

test("decisions are refused where there is nothing to decide, and each counts once", async () => {
  const refused = { reason: ErrorReason.PHASE_UNSUITABLE };
  const { id } = await runs.running();
  for (const order of ["retryTurn", "goOn"] as const)
    await expect(control(id, order)).rejects.toMatchObject(refused);
  await runs.agents.stopAgentExecution({ agentExecutionId: id });
  const lost = await withLostTurn(true);
  const { queueRevision } = await runs.agents.listAgentInputs({ agentExecutionId: lost });
  const seen = { expectedQueueRevision: queueRevision };
  const decided = await Promise.allSettled([
    control(lost, "retryTurn", seen),
    control(lost, "goOn", seen),
    control(lost, "retryTurn", seen),
  ]);
  expect(decided.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  await expect(control(lost, "retryTurn")).rejects.toMatchObject(refused);
  await runs.agents.stopAgentExecution({ agentExecutionId: lost });
  await expect(control(lost, "retryTurn")).rejects.toMatchObject(refused);
});

test("those who may send to the run decide, and the audit trail tells of it", async () => {
  const id = await withLostTurn(true);
  const { organizationId } = caller;
  const email = "second@example.org";
  const second = await insertTestMember(made.store, made.keys, { organizationId, email });
  const tokenId = await made.issueTokenId(second.userId);
  const user = userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId);
  const input = { case: "controlInput", value: { control: { case: "goOn", value: {} } } } as const;
  await expect(
    agentsOf(made, { ...user, role: "member" }).sendToAgentExecution({ agentExecutionId: id, input }),
  ).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  await control(id, "goOn");
  const [row] = await builderOf(made.store.reader)
    .selectFrom("audit_log")
    .select("reason")
    .where("subject_id", "=", id)
    .orderBy("sequence", "desc")
    .limit(1)
    .execute();
  expect(row?.reason).toBe("goOn");
});

test("a run that stops keeps no lost turn, nor what was delivered with one", async () => {
  const id = await withLostTurn(true);
  await runs.agents.stopAgentExecution({ agentExecutionId: id });
  const { status } = (await runs.get(id)) ?? {};
  expect([status?.phase, status?.lostTurn]).toEqual([Phase.STOPPED, undefined]);
  expect((await storedData(id))[0]).toBe(0);
});

test("a resumed run holds its queue where the one before did", async () => {
  const id = await withLostTurn(true);
  await runs.agents.stopAgentExecution({ agentExecutionId: id });
  const held = await runs.start({ resumeFrom: id });
  expect((await runs.get(held))?.spec?.holdAfterLostTurn).toBe(true);
  await runs.agents.stopAgentExecution({ agentExecutionId: held });
  const free = await runs.start({ resumeFrom: held, holdAfterLostTurn: false });
  expect((await runs.get(free))?.spec?.holdAfterLostTurn).toBe(false);
});
