import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import {
  AgentExecution_Phase as Phase,
  AgentInputReceipt as Receipt,
  AgentExecution_Status_Slot as Slot,
} from "#gen/service/v1/agent_pb.js";
import type { StartAgentRequest } from "#gen/service/v1/agent_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { askForSlots } from "../../../src/jobs/agent-timers.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { askForSlot } from "../../../src/services/agent/agent-slot.ts";
import { haltAgentExecutions } from "../../../src/services/agent/halt-agent-execution.ts";
import { AGENT_SLOTS_LEVEL } from "../../../src/store/feature-level.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { addAgent, inputsOf, type Runs, runsOn } from "./agents.ts";

const SLOT_MS = 10_000;

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  await addAgent(made, null, { isDefault: true });
  caller = await made.createOrganization("ours");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
});
afterEach(() => made.close());

const report = (given: Work, progress: object) =>
  runs.work.reportAgent({ ...runs.named(given), ...progress });
const ask = () => askForSlots(made.store, SLOT_MS, made.clock.now);
const renew = (given: Work) => runner.renewLease(runs.named(given));
const release = (given: Work) => runs.finish(given, Outcome.RELEASED);
const say = (agentExecutionId: string, id: string) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: {
      case: "userInput",
      value: { id, inputs: [{ input: { case: "text", value: { content: id } } }] },
    },
  });
const statusOf = async (id: string) => (await runs.get(id))?.status;
const leasable = () => runs.lease(WorkKind.AGENT);

/** A run that waits and whose agent can go on in another process. */
async function waiting(
  progress: object = { canResume: true },
  request: Partial<Pick<StartAgentRequest, "name">> = {},
) {
  const run = await runs.running(request);
  await report(run.given, { state: State.WAITING, ...progress });
  return run;
}

/** A run that has given its slot back. */
async function resting() {
  const run = await waiting();
  made.clock.now += SLOT_MS;
  await ask();
  await release(run.given);
  expect((await statusOf(run.id))?.slot).toBe(Slot.GIVEN_BACK);
  return run;
}

describe("a run that waits", () => {
  test("is asked for its slot when it has waited for the time, not before", async () => {
    const { id, given } = await waiting();
    expect(await statusOf(id)).toMatchObject({ slot: Slot.SHARED, phase: Phase.WAITING_FOR_INPUT });
    made.clock.now += SLOT_MS - 1;
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
    made.clock.now += 1;
    await ask();
    expect(await renew(given)).toMatchObject({ giveBack: true, stop: false });
    const { renewals } = await runner.renewLeases({ leases: [runs.named(given)] });
    expect(renewals[0]?.result.value).toMatchObject({ giveBack: true, stop: false });
    expect(await report(given, {})).toMatchObject({ giveBack: true, stop: false });
  });

  test.each([
    ["has not shown that it can go on", {}],
    ["has shown that it cannot", { canResume: false }],
  ])("keeps its slot where its agent %s, and says so", async (_, progress) => {
    const { id, given } = await waiting(progress);
    made.clock.now += 2 * SLOT_MS;
    await ask();
    expect((await statusOf(id))?.slot).toBe(Slot.KEPT);
    expect((await renew(given)).giveBack).toBe(false);
  });

  test("keeps it while it works, and when an input is queued or not seen", async () => {
    const { id, given } = await waiting();
    await say(id, "one");
    made.clock.now += SLOT_MS;
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
    const stream = inputsOf(made, runner, given);
    expect((await stream.next())?.input?.id).toBe("one");
    made.clock.now += SLOT_MS;
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
    await report(given, { seenInputIds: ["one"], state: State.RUNNING });
    made.clock.now += SLOT_MS;
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
    await report(given, { state: State.WAITING });
    made.clock.now += SLOT_MS - 1;
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
    made.clock.now += 1;
    await ask();
    expect((await renew(given)).giveBack).toBe(true);
    await stream.leave();
  });

  test("is asked earlier where others wait for a slot, the one that has waited longest first", async () => {
    await runner.leaseWork({ maxLeases: 1, agentSlots: 3, wait: { seconds: 0n } });
    const first = await waiting();
    made.clock.now += 10;
    const second = await waiting();
    made.clock.now += 10;
    await runs.start();
    await runs.bringUp();
    // Its environment is up, and there is a slot for it.
    await ask();
    expect((await renew(first.given)).giveBack).toBe(false);
    await runner.leaseWork({
      maxLeases: 1,
      agentSlots: 2,
      kinds: [WorkKind.PREBUILD],
      wait: { seconds: 0n },
    });
    await ask();
    await ask();
    expect([(await renew(first.given)).giveBack, (await renew(second.given)).giveBack]).toEqual([
      true,
      false,
    ]);
  });

  test("is not asked earlier of a runner that has not said how many slots it has", async () => {
    const { given } = await waiting();
    await runs.start();
    await runs.bringUp();
    await ask();
    expect((await renew(given)).giveBack).toBe(false);
  });

  test("is not asked while an older server runs alongside this one, which would not wake it", async () => {
    const { given } = await waiting();
    made.clock.now += SLOT_MS;
    await made.store.write(SYSTEM, "test", (tx) =>
      askForSlot({ ...tx, featureLevel: AGENT_SLOTS_LEVEL - 1 }, caller, given.leaseId),
    );
    expect((await renew(given)).giveBack).toBe(false);
  });
});

describe("a run whose slot was asked back", () => {
  test("gets no input under that lease, and the next lease gets it, once", async () => {
    const { id, given } = await waiting();
    const stream = inputsOf(made, runner, given);
    const next = stream.next();
    made.clock.now += SLOT_MS;
    await ask();
    // The stream ends, so that the runner asks why.
    expect(await next).toBeUndefined();
    await say(id, "late");
    const again = inputsOf(made, runner, given);
    expect(await again.next()).toBeUndefined();
    await release(given);
    const [taken] = await leasable();
    expect(taken?.fence).toBe(given.fence + 1n);
    const delivered = inputsOf(made, runner, taken as Work);
    expect((await delivered.next())?.input?.id).toBe("late");
    await report(taken as Work, { seenInputIds: ["late"], state: State.RUNNING });
    await report(taken as Work, { state: State.WAITING });
    const { inputs } = await runs.agents.listAgentInputs({ agentExecutionId: id, includePast: true });
    expect(inputs.map((input) => [input.id, input.receipt])).toEqual([["late", Receipt.SEEN]]);
    await delivered.leave();
  });

  test("rests when its runner is lost instead", async () => {
    const { id } = await waiting();
    made.clock.now += SLOT_MS;
    await ask();
    made.clock.now += LEASE_MS;
    expect(await endExpiredLeases(made.store, made.clock.now)).toBe(1);
    expect(await statusOf(id)).toMatchObject({ phase: Phase.WAITING_FOR_INPUT, slot: Slot.GIVEN_BACK });
    expect(await leasable()).toEqual([]);
    await say(id, "one");
    expect(await leasable()).toHaveLength(1);
  });

  test("stops when its runner lets it go, if it is stopped meanwhile", async () => {
    const { id, given } = await waiting();
    made.clock.now += SLOT_MS;
    await ask();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await renew(given)).toMatchObject({ stop: true, giveBack: false });
    await release(given);
    expect(await statusOf(id)).toMatchObject({ phase: Phase.STOPPED, slot: Slot.UNSPECIFIED });
  });
});

describe("a run that has given its slot back", () => {
  test("is leased to nobody, and waits on", async () => {
    const { id, given } = await resting();
    expect((await statusOf(id))?.phase).toBe(Phase.WAITING_FOR_INPUT);
    expect(await leasable()).toEqual([]);
    const lost = expect.objectContaining({ reason: ErrorReason.LEASE_LOST });
    await expect(renew(given)).rejects.toEqual(lost);
  });

  test("is leased again with its next input, on its runner only", async () => {
    const { id } = await resting();
    const other = await registeredRunner(made, caller, { name: "south" });
    await say(id, "one");
    await say(id, "two");
    const request = { maxLeases: 2, kinds: [WorkKind.AGENT], wait: { seconds: 0n } };
    expect((await other.leaseWork(request)).works).toEqual([]);
    const { works } = await runner.leaseWork(request);
    expect(works).toHaveLength(1);
    expect(works[0]?.attempt).toBe(1);
    expect(await statusOf(id)).toMatchObject({ phase: Phase.WAITING_FOR_INPUT, slot: Slot.SHARED });
  });

  test("gives it back again where the message was taken out before it was delivered", async () => {
    const { id } = await resting();
    await say(id, "one");
    await runs.agents.sendToAgentExecution({
      agentExecutionId: id,
      input: {
        case: "controlInput",
        value: { control: { case: "deleteQueuedMessage", value: { userInputId: "one" } } },
      },
    });
    const [taken] = await leasable();
    made.clock.now += SLOT_MS;
    await ask();
    expect((await renew(taken as Work)).giveBack).toBe(true);
    await release(taken as Work);
    expect((await statusOf(id))?.slot).toBe(Slot.GIVEN_BACK);
  });

  test("is leased again for a turn that was lost before and is asked for again", async () => {
    const { id, given } = await runs.running();
    await say(id, "one");
    const stream = inputsOf(made, runner, given);
    expect((await stream.next())?.input?.id).toBe("one");
    await report(given, { seenInputIds: ["one"], state: State.RUNNING });
    made.clock.now += LEASE_MS;
    await endExpiredLeases(made.store, made.clock.now);
    await stream.leave();
    const again = await runs.takeOn();
    await report(again, { canResume: true, state: State.WAITING });
    made.clock.now += SLOT_MS;
    await ask();
    await release(again);
    expect((await statusOf(id))?.slot).toBe(Slot.GIVEN_BACK);
    await runs.agents.sendToAgentExecution({
      agentExecutionId: id,
      input: { case: "controlInput", value: { control: { case: "retryTurn", value: {} } } },
    });
    const delivered = inputsOf(made, runner, await runs.takeOn());
    expect((await delivered.next())?.input?.id).toBe("one");
    await delivered.leave();
  });

  test("takes turns with what others have queued", async () => {
    const ours = [await resting(), await resting()];
    const others = runsOn(made, userOf(caller, made.newId()), runner);
    const theirs = await others.start();
    await others.bringUp();
    for (const { id } of ours) await say(id, "one");
    const works = [await runs.takeOn(), await runs.takeOn()];
    expect(
      works.map(({ work }) => (work.value as { agentExecution?: { id: string } }).agentExecution?.id),
    ).toContain(theirs);
  });

  test("stops at once", async () => {
    const { id } = await resting();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect((await statusOf(id))?.phase).toBe(Phase.STOPPED);
    expect(await leasable()).toEqual([]);
  });

  test("stops at once with the account that it runs for", async () => {
    const { id } = await resting();
    await made.store.write(SYSTEM, "test", async (tx) => {
      await haltAgentExecutions(tx, caller, { accountId: caller.accountId }, {});
    });
    expect((await statusOf(id))?.phase).toBe(Phase.STOPPED);
    expect(await leasable()).toEqual([]);
  });
});
