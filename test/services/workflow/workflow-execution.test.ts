import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as Phase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  actionOf,
  LINES,
  Outcome,
  overRepositories,
  runnerOf,
  State,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

let testStore: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  workflows = workflowsOf(testStore, caller);
  runner = await runnerOf(testStore, caller);
});
afterEach(() => testStore.close());

const phaseOf = async (executionId: string) =>
  Phase[(await workflows.execution(executionId)).status?.phase ?? 0];
const phasesOf = async (executionId: string) =>
  (await workflows.actions(executionId)).map(({ status }) => ActionPhase[status?.phase ?? 0]);
const countsOf = async (executionId: string) => {
  const { status } = await workflows.execution(executionId);
  return [
    status?.pendingActionCount,
    status?.runningActionCount,
    status?.failedActionCount,
    status?.doneActionCount,
    status?.stoppedActionCount,
  ];
};

describe("an execution", () => {
  test("is made with its actions in order, of which no more run than may", async () => {
    const workflowId = await workflows.make({ triggers: [overRepositories(5)], action: action(2, 100) });
    const execution = await workflows.start(workflowId);
    expect(execution.status).toMatchObject({ phase: Phase.PENDING, pendingActionCount: 5 });
    const names = (await workflows.actions(execution.id)).map(({ metadata }) => metadata?.actionName);
    expect(names).toEqual(["r0", "r1", "r2", "r3", "r4"]);
    const [first, second, third] = await runner.lease(9);
    expect(third).toBeUndefined();
    if (!first || !second) throw new Error("no work");
    expect(await countsOf(execution.id)).toEqual([3, 2, 0, 0, 0]);
    expect(await phaseOf(execution.id)).toBe("RUNNING");
    await runner.complete(first);
    const [next, none] = await runner.lease(9);
    expect([next && actionOf(next).environment?.metadata?.name, none]).toEqual(["r2", undefined]);
    expect(await countsOf(execution.id)).toEqual([2, 2, 0, 1, 0]);
  });

  test("completes after its last action, which its workflow notes", async () => {
    const workflowId = await workflows.make({ triggers: [overRepositories(2)] });
    const { id } = await workflows.start(workflowId);
    for (let done = 0; done < 2; done += 1) {
      expect(await phaseOf(id)).not.toBe("COMPLETED");
      testStore.clock.now += 1000;
      for (const work of await runner.lease()) await runner.complete(work);
    }
    const execution = await workflows.execution(id);
    expect([Phase[execution.status?.phase ?? 0], await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 0, 2, 0]]);
    expect(execution.metadata?.finishedAt).toBeDefined();
    const row = await builderOf(testStore.store.reader)
      .selectFrom("workflow")
      .select("completed_at")
      .executeTakeFirst();
    expect(row?.completed_at).toBe(testStore.clock.now);
    expect(await runner.lease()).toEqual([]);
  });

  test("has failed when an action did; the others go on", async () => {
    const workflowId = await workflows.make({ triggers: [overRepositories(2)] });
    const { id } = await workflows.start(workflowId);
    for (const work of await runner.lease()) await runner.fail(work);
    for (const work of await runner.lease()) await runner.complete(work);
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 1, 1, 0]]);
    const [failed] = await workflows.actions(id);
    expect(failed?.status?.failures).toMatchObject([{ reason: "step_failed" }]);
    expect(failed?.status?.failureMessage).not.toBe("");
    const { workflowExecutions } = await workflows.listWorkflowExecutions({
      filter: { hasFailedActions: true },
    });
    expect(workflowExecutions.map((each) => each.id)).toEqual([id]);
  });

  test("without actions is completed at once, without a report", async () => {
    const trigger = { manual: {}, context: { projects: {} } };
    const workflowId = await workflows.make({ triggers: [trigger], report: action(1, 1) });
    const { status } = await workflows.start(workflowId);
    expect(status).toMatchObject({ phase: Phase.COMPLETED, pendingActionCount: 0 });
  });

  test("leaves out what is past its limit, and counts that", async () => {
    const left = async (count: number) => {
      const workflowId = await workflows.make({ triggers: [overRepositories(count)], action: action(1, 3) });
      const { status } = await workflows.start(workflowId);
      return [status?.pendingActionCount, status?.warnings.map(({ reason, meta }) => [reason, meta.count])];
    };
    expect(await left(2)).toEqual([2, []]);
    expect(await left(3)).toEqual([3, []]);
    expect(await left(4)).toEqual([3, [["actions_left_out", "1"]]]);
    expect(await left(9)).toEqual([3, [["actions_left_out", "6"]]]);
  });

  test("never reads its workflow again", async () => {
    const workflowId = await workflows.make({ action: action(1, 1, task("before")) });
    const { id } = await workflows.start(workflowId);
    await workflows.updateWorkflow({
      workflowId,
      action: {
        limits: { maxParallel: 1, maxTotal: 1 },
        steps: [{ step: { case: "task", value: { command: "after" } } }],
      },
      disabled: true,
    });
    const [work] = await runner.lease();
    expect(work && actionOf(work).steps[0]?.step.value).toMatchObject({ command: "before" });
    expect((await workflows.execution(id)).spec?.action?.steps[0]?.step.value).toMatchObject({
      command: "before",
    });
  });

  test("keeps a row of the record for each phase, and none for the beginning of a step", async () => {
    await workflows.start(await workflows.make({ action: action(1, 1, task(), task()) }));
    for (const work of await runner.lease()) await runner.complete(work);
    const { audit } = await testStore.history(caller);
    const operations = (type: string) =>
      audit
        .filter(({ subject_type }) => subject_type === type)
        .map(({ operation }) => operation.split("/")[1]);
    expect(operations("workflow_execution")).toEqual(["StartWorkflow", "LeaseWork", "FinishWork"]);
    expect(operations("workflow_action")).toEqual([
      "StartWorkflow",
      "LeaseWork",
      "ReportProgress",
      "ReportProgress",
      "FinishWork",
    ]);
  });
});

describe("the report of an execution", () => {
  const reported = {
    triggers: [overRepositories(2)],
    action: action(2, 2, LINES),
    report: action(1, 1, LINES),
  };

  test("runs once at the end, over the outputs of the others", async () => {
    const { id } = await workflows.start(await workflows.make(reported));
    const works = await runner.lease(9);
    await Promise.all(works.map((work, index) => runner.complete(work, String(index))));
    const actions = await workflows.actions(id);
    expect(actions.map(({ metadata }) => [metadata?.actionName, metadata?.report])).toEqual([
      ["r0", false],
      ["r1", false],
      ["report", true],
    ]);
    expect(await phaseOf(id)).toBe("RUNNING");
    const [work] = await runner.lease(9);
    if (!work) throw new Error("no report");
    const { report, outputs, environment } = actionOf(work);
    expect([report, environment?.spec?.content?.initializer?.specs ?? []]).toEqual([true, []]);
    expect(outputs.map(({ actionId, values }) => [actionId, values.lines?.value.value])).toEqual([
      [actions[0]?.id, 0n],
      [actions[1]?.id, 1n],
    ]);
    await runner.complete(work, "1");
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 0, 3, 0]]);
    const { outputs: listed } = await workflows.listWorkflowExecutionOutputs({
      filter: { workflowExecutionIds: [id] },
    });
    expect(listed.map(({ actionId }) => actionId)).toEqual(actions.map((each) => each.id));
  });

  test("runs although an action failed, and its own failure fails the execution", async () => {
    const { id } = await workflows.start(await workflows.make(reported));
    const [first, second] = await runner.lease(9);
    if (!first || !second) throw new Error("no work");
    await runner.fail(first);
    await runner.complete(second);
    const [work] = await runner.lease();
    if (!work) throw new Error("no report");
    await runner.report(work, { stepIndex: 0, state: State.RUNNING });
    const outputs = { lines: new TextEncoder().encode("many") };
    const { stop } = await runner.report(work, { stepIndex: 0, state: State.DONE, outputs });
    expect(stop).toBe(true);
    await runner.finish(work, Outcome.STOPPED);
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 2, 1, 0]]);
    const report = (await workflows.actions(id)).at(-1);
    expect(report?.status?.failures).toMatchObject([{ reason: "output_invalid", meta: { output: "lines" } }]);
  });

  test("does not run when the execution was cancelled", async () => {
    const { id } = await workflows.start(await workflows.make(reported));
    const [first] = await runner.lease();
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    if (first) await runner.finish(first, Outcome.STOPPED);
    expect([await phaseOf(id), await phasesOf(id)]).toEqual(["STOPPED", ["STOPPED", "STOPPED"]]);
    expect(await runner.lease()).toEqual([]);
  });
});

describe("the cancellation of an execution", () => {
  test("stops what waits at once, and what runs once its runner let go", async () => {
    const workflowId = await workflows.make({ triggers: [overRepositories(4)], action: action(2, 4) });
    const { id, spec } = await workflows.start(workflowId);
    const [first] = await runner.lease();
    if (!first) throw new Error("no work");
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["STOPPING", [0, 1, 0, 0, 3]]);
    const stopping = await workflows.execution(id);
    expect(stopping.spec?.desiredPhase).toBe(Phase.STOPPED);
    expect([stopping.spec?.session === spec?.session, stopping.status?.session]).toEqual([
      false,
      stopping.spec?.session,
    ]);
    expect(await runner.lease()).toEqual([]);
    expect((await runner.renew(first)).stop).toBe(true);
    await runner.finish(first, Outcome.STOPPED);
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["STOPPED", [0, 0, 0, 0, 4]]);
    expect((await workflows.execution(id)).metadata?.finishedAt).toBeDefined();
  });

  test("lets an action be done that ended before the stop reached it", async () => {
    const { id } = await workflows.start(await workflows.make());
    const [work] = await runner.lease();
    if (!work) throw new Error("no work");
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await runner.complete(work);
    expect([await phaseOf(id), await phasesOf(id)]).toEqual(["STOPPED", ["DONE"]]);
  });

  test("is complete at once when nothing runs", async () => {
    const { id } = await workflows.start(await workflows.make({ triggers: [overRepositories(3)] }));
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["STOPPED", [0, 0, 0, 0, 3]]);
    expect(await builderOf(testStore.store.reader).selectFrom("work").selectAll().execute()).toEqual([]);
  });

  test("again, or after the end, changes nothing", async () => {
    const { id } = await workflows.start(await workflows.make());
    for (let times = 0; times < 2; times += 1)
      await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    const before = await testStore.history(caller);
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    const [only] = await workflows.actions(id);
    await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: only?.id ?? "" });
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("of one action lets the others go on, and makes room for them", async () => {
    const { id } = await workflows.start(await workflows.make({ triggers: [overRepositories(3)] }));
    const [work] = await runner.lease();
    const [first, second] = await workflows.actions(id);
    for (const each of [first, second]) {
      await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: each?.id ?? "" });
    }
    expect(await phasesOf(id)).toEqual(["STOPPING", "STOPPED", "PENDING"]);
    expect(await runner.lease()).toEqual([]);
    if (work) await runner.finish(work, Outcome.STOPPED);
    for (const next of await runner.lease(9)) await runner.complete(next);
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 0, 1, 2]]);
  });

  test("of every action stops the execution, which has no report then", async () => {
    const triggers = [overRepositories(2)];
    const { id } = await workflows.start(await workflows.make({ triggers, report: action(1, 1, LINES) }));
    const [work] = await runner.lease();
    for (const each of await workflows.actions(id)) {
      await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: each.id });
    }
    expect(await phaseOf(id)).toBe("RUNNING");
    if (work) await runner.finish(work, Outcome.STOPPED);
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["STOPPED", [0, 0, 0, 0, 2]]);
  });

  test("of the last action completes an execution of which one was done", async () => {
    const { id } = await workflows.start(await workflows.make({ triggers: [overRepositories(2)] }));
    for (const work of await runner.lease()) await runner.complete(work);
    const [, last] = await workflows.actions(id);
    await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: last?.id ?? "" });
    expect([await phaseOf(id), await countsOf(id)]).toEqual(["COMPLETED", [0, 0, 0, 1, 1]]);
  });
});

describe("a lost runner", () => {
  test("gives its action another attempt in a new environment, with a visible reason", async () => {
    const { id } = await workflows.start(await workflows.make({ action: action(1, 1, task(), LINES) }));
    const [lost] = await runner.lease();
    if (!lost) throw new Error("no work");
    await runner.report(lost, { stepIndex: 0, state: State.RUNNING }, { stepIndex: 0, state: State.DONE });
    const [before] = await workflows.actions(id);
    await runner.fallSilent();
    const [waiting] = await workflows.actions(id);
    expect(waiting?.status).toMatchObject({
      phase: ActionPhase.PENDING,
      warnings: [{ reason: "attempt_lost", meta: { runner_id: runner.runnerId, attempt: "1" } }],
    });
    expect(await countsOf(id)).toEqual([1, 0, 0, 0, 0]);
    const [again] = await runner.lease();
    if (!again) throw new Error("no second attempt");
    await runner.complete(again);
    const [after] = await workflows.actions(id);
    expect(after?.status).toMatchObject({ phase: ActionPhase.DONE, attempt: 2, failures: [] });
    expect(after?.status?.environmentId).not.toBe(before?.status?.environmentId);
    expect(after?.metadata?.startedAt).toEqual(before?.metadata?.startedAt);
  });

  test("fails its action after the third attempt", async () => {
    const { id } = await workflows.start(await workflows.make());
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect((await runner.lease()).map((work) => work.attempt)).toEqual([attempt]);
      await runner.fallSilent();
    }
    const [only] = await workflows.actions(id);
    expect(only?.status?.failures.map(({ reason }) => reason)).toEqual(["attempts_exhausted"]);
    expect(only?.status?.warnings.map(({ meta }) => meta.attempt)).toEqual(["1", "2", "3"]);
    expect([await phaseOf(id), await countsOf(id), await runner.lease()]).toEqual([
      "COMPLETED",
      [0, 0, 1, 0, 0],
      [],
    ]);
  });

  test("forgets the outputs of the attempt", async () => {
    const { id } = await workflows.start(await workflows.make({ action: action(1, 1, LINES, task()) }));
    const [lost] = await runner.lease();
    if (!lost) throw new Error("no work");
    const outputs = { lines: new TextEncoder().encode("3") };
    await runner.report(
      lost,
      { stepIndex: 0, state: State.RUNNING },
      { stepIndex: 0, state: State.DONE, outputs },
    );
    const listed = async () =>
      (await workflows.listWorkflowExecutionOutputs({ filter: { workflowExecutionIds: [id] } })).outputs
        .length;
    expect(await listed()).toBe(1);
    await runner.fallSilent();
    expect(await listed()).toBe(0);
  });

  test("after a cancellation is not waited for", async () => {
    const { id } = await workflows.start(await workflows.make());
    await runner.lease();
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await runner.fallSilent();
    expect([await phaseOf(id), await phasesOf(id), await runner.lease()]).toEqual([
      "STOPPED",
      ["STOPPED"],
      [],
    ]);
  });
});

test("what another organization runs is not found, and not listed", async () => {
  const stranger = await testStore.createOrganization("island");
  const theirs = workflowsOf(testStore, stranger);
  const { id } = await workflows.start(await workflows.make({ action: action(1, 1, LINES) }));
  for (const work of await runner.lease()) await runner.complete(work);
  const [only] = await workflows.actions(id);
  const actionId = { workflowExecutionActionId: only?.id ?? "" };
  const before = await testStore.history(caller);
  for (const call of [
    () => theirs.getWorkflowExecution({ workflowExecutionId: id }),
    () => theirs.cancelWorkflowExecution({ workflowExecutionId: id }),
    () => theirs.retryFailedActions({ workflowExecutionId: id }),
    () => theirs.getWorkflowExecutionAction(actionId),
    () => theirs.cancelWorkflowExecutionAction(actionId),
  ]) {
    await expect(call()).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  }
  expect((await theirs.listWorkflowExecutions({})).workflowExecutions).toEqual([]);
  expect((await theirs.listWorkflowExecutionActions({})).workflowExecutionActions).toEqual([]);
  const filter = { workflowExecutionIds: [id] };
  expect((await theirs.listWorkflowExecutionOutputs({ filter })).outputs).toEqual([]);
  expect(await (await runnerOf(testStore, stranger, "south")).lease()).toEqual([]);
  expect(await testStore.history(caller)).toEqual(before);
});
