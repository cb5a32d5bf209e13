import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
} from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as ExecutionPhase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner, startedRun } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

const look = () => endExpiredLeases(made.store, made.clock.now);
const LOST = { reason: ErrorReason.LEASE_LOST };
const named = ({ leaseId, fence }: Work) => ({ leaseId, fence });
const contentOf = ({ work }: Work) => {
  if (work.case !== "action") throw new Error(`the work is ${work.case}`);
  return work.value;
};
const environments = async () =>
  (await servicesOf(made, caller).environments.listEnvironments({})).environments;

describe("the lease of an action", () => {
  test("carries an environment of its own, in which its token acts, and the steps", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller, { maxTimeS: 60 });
    const given = await runner.leaseOne();
    const action = contentOf(given);
    expect(action.steps.map(({ step }) => step.value)).toMatchObject([
      { command: "make" },
      { command: "make test" },
    ]);
    expect(action.maxTime).toMatchObject({ seconds: 60n });
    const [environment] = await environments();
    expect(action.environment).toEqual(environment);
    expect(environment).toMatchObject({
      metadata: { runnerId: runner.runnerId, creator: { id: caller.subject.id }, name: "r0" },
      spec: { workflowActionId: action.actionId, desiredPhase: EnvironmentPhase.RUNNING },
    });
    expect((await run.actions())[0]).toMatchObject({
      status: { phase: ActionPhase.RUNNING, attempt: 1, environmentId: environment?.id },
    });
    expect(made.keys.readToken(given.environmentToken)?.kind).toBe("environment");
  });

  test("keeps the logs of the newest attempt alone", async () => {
    const runner = await registeredRunner(made, caller);
    await startedRun(made, caller);
    const print = async (text: string) => {
      const given = await runner.leaseOne();
      const logs = [{ stepIndex: 0, offset: 0n, data: Buffer.from(text) }];
      await runner.reportProgress({ ...named(given), logs });
    };
    const kept = async () => {
      const rows = await builderOf(made.store.reader)
        .selectFrom("step_log")
        .select(["attempt", "data"])
        .execute();
      return rows.map(({ attempt, data }) => [attempt, Buffer.from(data).toString()]);
    };
    await print("one");
    made.clock.now += LEASE_MS;
    await look();
    expect(await kept()).toEqual([[1, "one"]]);
    await print("two");
    expect(await kept()).toEqual([[2, "two"]]);
  });

  test("ends with the action: its environment and token are gone, and a repetition is refused", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller);
    const given = await runner.leaseOne();
    const name = named(given);
    await runner.reportProgress({
      ...name,
      environment: { phase: EnvironmentPhase.RUNNING },
      steps: [
        { stepIndex: 0, state: State.RUNNING },
        { stepIndex: 0, state: State.DONE },
        { stepIndex: 1, state: State.RUNNING },
      ],
    });
    await expect(runner.finishWork({ ...name, outcome: Outcome.DONE })).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
    });
    await runner.reportProgress({ ...name, steps: [{ stepIndex: 1, state: State.DONE }] });
    await runner.finishWork({ ...name, outcome: Outcome.DONE });
    expect(await run.execution()).toMatchObject({
      status: { phase: ExecutionPhase.COMPLETED, doneActionCount: 1 },
    });
    expect(await environments()).toEqual([]);
    const tokens = await builderOf(made.store.reader)
      .selectFrom("token")
      .selectAll()
      .where("kind", "=", "environment")
      .execute();
    expect(tokens).toEqual([]);
    await expect(runner.finishWork({ ...name, outcome: Outcome.DONE })).rejects.toMatchObject(LOST);
    await expect(runner.renewLease(name)).rejects.toMatchObject(LOST);
    expect(await runner.lease()).toEqual([]);
  });

  test("holds to the millisecond, and by each renewal and report again", async () => {
    const runner = await registeredRunner(made, caller);
    await startedRun(made, caller);
    const name = named(await runner.leaseOne());
    made.clock.now += LEASE_MS - 1;
    await runner.renewLease(name);
    made.clock.now += LEASE_MS - 1;
    expect(await look()).toBe(0);
    await runner.reportProgress(name);
    made.clock.now += LEASE_MS;
    await expect(runner.renewLease(name)).rejects.toMatchObject(LOST);
    expect(await look()).toBe(1);
  });

  test("that ran out goes to another, and what comes late is refused and changes nothing", async () => {
    const first = await registeredRunner(made, caller, { name: "north" });
    const second = await registeredRunner(made, caller, { name: "south" });
    const run = await startedRun(made, caller);
    const old = await first.leaseOne();
    await first.reportProgress({ ...named(old), steps: [{ stepIndex: 0, state: State.RUNNING }] });
    made.clock.now += LEASE_MS;
    await look();
    expect((await run.actions())[0]).toMatchObject({
      status: {
        phase: ActionPhase.PENDING,
        stepStatuses: [{ phase: StepPhase.PENDING }, { phase: StepPhase.PENDING }],
        warnings: [{ reason: "attempt_lost", meta: { runner_id: first.runnerId, attempt: "1" } }],
      },
    });
    const again = await second.leaseOne();
    expect(again).toMatchObject({ leaseId: old.leaseId, fence: old.fence + 1n, attempt: 2 });
    expect(contentOf(again).environment?.id).not.toBe(contentOf(old).environment?.id);
    const history = (await made.history(caller)).audit.length;
    const late = [
      first.renewLease(named(old)),
      first.reportProgress({ ...named(old), steps: [{ stepIndex: 0, state: State.DONE }] }),
      first.finishWork({ ...named(old), outcome: Outcome.DONE }),
      first.getHostCredential({ ...named(old), host: "git.example.org" }),
      // Even who guesses the new fence does not hold the lease.
      first.renewLease(named(again)),
    ];
    const refused = Array(late.length).fill({ status: "rejected", reason: expect.objectContaining(LOST) });
    expect(await Promise.allSettled(late)).toEqual(refused);
    expect((await made.history(caller)).audit).toHaveLength(history);
  });

  test("that ran out leaves its environment to the runner that has it, to be cleaned up", async () => {
    const first = await registeredRunner(made, caller, { name: "north" });
    const second = await registeredRunner(made, caller, { name: "south" });
    await startedRun(made, caller);
    const lostId = contentOf(await first.leaseOne()).environment?.id;
    made.clock.now += LEASE_MS;
    await look();
    const taken = await second.lease(10);
    expect(taken.map(({ work }) => work.case)).toEqual(["action"]);
    const [cleaning, ...others] = await first.lease(10);
    expect(others).toEqual([]);
    expect(cleaning?.work).toMatchObject({
      case: "environment",
      value: { environment: { id: lostId, spec: { desiredPhase: EnvironmentPhase.DELETED } } },
    });
    expect(cleaning?.environmentToken).toBe("");
    if (cleaning) await first.finishWork({ ...named(cleaning), outcome: Outcome.DONE });
    // The attempt that is under way has nothing to do with it.
    expect(await second.renewLease(named(taken[0] as Work))).toMatchObject({ stop: false });
    expect((await environments()).map(({ id }) => id)).toEqual([contentOf(taken[0] as Work).environment?.id]);
  });

  test.each([
    [
      "runs out",
      async () => {
        made.clock.now += LEASE_MS;
      },
    ],
    [
      "is given back",
      async (runner: RegisteredRunner, given: Work) => {
        await runner.finishWork({ ...named(given), outcome: Outcome.RELEASED });
      },
    ],
  ])("is tried three times when it %s, and then has failed with the reason", async (_, lose) => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller);
    for (const attempt of [1, 2, 3]) {
      const works = await runner.leaseWork({ maxLeases: 1, kinds: [WorkKind.ACTION], wait: { seconds: 0n } });
      const [given] = works.works;
      expect(given?.attempt).toBe(attempt);
      if (given) await lose(runner, given);
      await look();
    }
    expect((await run.actions())[0]).toMatchObject({
      status: {
        phase: ActionPhase.DONE,
        attempt: 3,
        failures: [{ reason: "attempts_exhausted" }],
        warnings: [{ reason: "attempt_lost" }, { reason: "attempt_lost" }, { reason: "attempt_lost" }],
      },
    });
    expect(await run.execution()).toMatchObject({
      status: { phase: ExecutionPhase.COMPLETED, failedActionCount: 1 },
    });
    const open = await builderOf(made.store.reader)
      .selectFrom("work")
      .selectAll()
      .where("kind", "=", WorkKind.ACTION)
      .execute();
    expect(open).toEqual([]);
    // Three environments to clean up, and nothing else.
    expect((await runner.lease(10)).map(({ work }) => work.case)).toEqual(Array(3).fill("environment"));
  });

  test("is asked to stop when the execution is cancelled, and stops", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller, { actions: 2, maxParallel: 1 });
    const given = await runner.leaseOne();
    expect(await runner.renewLease(named(given))).toMatchObject({ stop: false });
    await run.workflows.cancelWorkflowExecution({ workflowExecutionId: run.workflowExecutionId });
    expect(await runner.renewLease(named(given))).toMatchObject({ stop: true });
    expect(await runner.reportProgress(named(given))).toMatchObject({ stop: true });
    await runner.finishWork({ ...named(given), outcome: Outcome.STOPPED });
    expect(await run.execution()).toMatchObject({
      status: { phase: ExecutionPhase.STOPPED, stoppedActionCount: 2 },
    });
    expect(await environments()).toEqual([]);
    expect(await runner.lease()).toEqual([]);
  });

  test.each(["stopped", "deleted", "deleted by force"])(
    "is asked to stop when its environment is %s",
    async (how) => {
      const runner = await registeredRunner(made, caller);
      const run = await startedRun(made, caller);
      const given = await runner.leaseOne();
      const { environments: calls } = servicesOf(made, caller);
      const environmentId = contentOf(given).environment?.id ?? "";
      if (how === "stopped") await calls.stopEnvironment({ environmentId });
      else await calls.deleteEnvironment({ environmentId, force: how === "deleted by force" });
      expect(await runner.renewLease(named(given))).toMatchObject({ stop: true });
      await runner.finishWork({ ...named(given), outcome: Outcome.STOPPED });
      expect((await run.actions())[0]?.status?.failures).toMatchObject([{ reason: "stopped_by_runner" }]);
      expect(await environments()).toEqual([]);
      expect(await runner.lease()).toEqual([]);
    },
  );

  test("goes on while the environment of the attempt before is cleaned up", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller);
    await runner.leaseOne();
    made.clock.now += LEASE_MS;
    await look();
    const given = await runner.lease(2);
    const works = Object.fromEntries(given.map((work) => [work.work.case, work]));
    await runner.finishWork({ ...named(works.environment as Work), outcome: Outcome.DONE });
    expect(await environments()).toHaveLength(1);
    expect(await runner.renewLease(named(works.action as Work))).toMatchObject({ stop: false });
    expect((await run.actions())[0]?.status?.phase).toBe(ActionPhase.RUNNING);
  });

  test("that runs out while it is to stop ends the action, and leaves its environment to be cleaned up", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller);
    await runner.leaseOne();
    await run.workflows.cancelWorkflowExecution({ workflowExecutionId: run.workflowExecutionId });
    made.clock.now += LEASE_MS;
    await look();
    expect(await run.execution()).toMatchObject({ status: { phase: ExecutionPhase.STOPPED } });
    expect((await runner.lease(10)).map(({ work }) => work.case)).toEqual(["environment"]);
  });

  test("carries to the report what the other actions gave, and keeps what it gives", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller, { report: true });
    const first = await runner.leaseOne();
    const steps = [0, 1].flatMap((stepIndex) => [
      { stepIndex, state: State.RUNNING },
      { stepIndex, state: State.DONE },
    ]);
    await runner.reportProgress({ ...named(first), steps });
    await runner.finishWork({ ...named(first), outcome: Outcome.DONE });
    const given = await runner.leaseOne();
    expect(contentOf(given)).toMatchObject({ report: true, outputs: [] });
    expect(contentOf(given).environment?.spec?.content).toBe(undefined);
    const printed = (text: string) => [
      { stepIndex: 0, state: State.RUNNING },
      { stepIndex: 0, state: State.DONE, outputs: { count: new TextEncoder().encode(text) } },
    ];
    expect(await runner.reportProgress({ ...named(given), steps: printed("7\n") })).toMatchObject({
      stop: false,
    });
    await runner.finishWork({ ...named(given), outcome: Outcome.DONE });
    expect(await run.execution()).toMatchObject({ status: { doneActionCount: 2 } });
  });
});
