import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  actionOf,
  LINES,
  Outcome,
  overRepositories,
  runnerOf,
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

const retry = async (workflowExecutionId: string) => {
  const { workflowExecution } = await workflows.retryFailedActions({ workflowExecutionId });
  if (!workflowExecution) throw new Error("no execution was answered");
  return workflowExecution;
};
const reported = {
  triggers: [overRepositories(3)],
  action: action(3, 3, { task: { command: "echo {{ .Parameters.word }}" } }, LINES),
  report: action(1, 1, LINES),
};
const parameters = { word: "hello" };

/** Does the work there is; the actions of these names fail, the others print their place. */
async function doAll(failing: readonly string[]): Promise<void> {
  for (const [index, work] of (await runner.lease(9)).entries()) {
    const { environment } = actionOf(work);
    if (failing.includes(environment?.metadata?.name ?? "")) await runner.fail(work);
    else await runner.complete(work, String(index));
  }
}

const namesOf = async (id: string) =>
  (await workflows.actions(id)).map(({ metadata }) => metadata?.actionName);

describe("a retry", () => {
  test("does the failed actions again from the same copies, and the report over everything", async () => {
    const workflowId = await workflows.make(reported);
    const first = await workflows.start(workflowId, { parameters });
    await doAll(["r1"]);
    await doAll([]);
    const before = await workflows.execution(first.id);
    expect([before.status?.phase, before.status?.failedActionCount]).toEqual([Phase.COMPLETED, 1]);
    await workflows.updateWorkflow({
      workflowId,
      action: {
        limits: { maxParallel: 1, maxTotal: 1 },
        steps: [{ step: { case: "task", value: { command: "no" } } }],
      },
      triggers: [],
    });

    const again = await retry(first.id);
    expect(again.metadata?.retriedExecutionId).toBe(first.id);
    expect([again.spec?.action, again.spec?.trigger]).toEqual([before.spec?.action, before.spec?.trigger]);
    expect(again.status).toMatchObject({ phase: Phase.PENDING, pendingActionCount: 1 });
    expect(await namesOf(again.id)).toEqual(["r1"]);
    const [work] = await runner.lease();
    if (!work) throw new Error("no work");
    expect(Object.values(actionOf(work).variables)).toEqual(["hello"]);
    await runner.complete(work, "41");
    const [report] = await runner.lease();
    if (!report) throw new Error("no report");
    const inputs = actionOf(report).outputs.map(({ values }) => Number(values.lines?.value.value));
    expect(inputs).toEqual([0, 2, 41]);
    await runner.complete(report);
    expect((await workflows.execution(again.id)).status).toMatchObject({
      phase: Phase.COMPLETED,
      failedActionCount: 0,
      doneActionCount: 2,
    });
    expect(await workflows.execution(first.id)).toEqual(before);
  });

  test("does many, and reads none of those that are done", async () => {
    const many = 60;
    const names = Array.from({ length: many }, (_, index) => `r${index}`);
    const workflow = { triggers: [overRepositories(many + 1)], action: action(25, many + 1) };
    const { id } = await workflows.start(await workflows.make(workflow));
    while (!(await workflows.execution(id)).metadata?.finishedAt) await doAll(names);
    const done = await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("workflow_action")
        .set({ body: "{" })
        .where("execution_id", "=", id)
        .where("failed", "=", 0)
        .executeTakeFirst(),
    );
    expect(done.numUpdatedRows).toBe(1n);
    const again = await retry(id);
    expect(again.status?.pendingActionCount).toBe(many);
    expect(await namesOf(again.id)).toEqual(names);
  });

  test("of a failed report alone does only that, over what was reported", async () => {
    const { id } = await workflows.start(await workflows.make(reported), { parameters });
    await doAll([]);
    await doAll(["report"]);
    const again = await retry(id);
    expect(await namesOf(again.id)).toEqual(["report"]);
    const [work] = await runner.lease();
    if (!work) throw new Error("no report");
    expect(actionOf(work).outputs).toHaveLength(3);
    await runner.complete(work);
    expect((await workflows.execution(again.id)).status?.phase).toBe(Phase.COMPLETED);
  });

  test("can be retried itself, and its report then goes over all that was reported", async () => {
    const { id } = await workflows.start(await workflows.make(reported), { parameters });
    await doAll(["r0", "r1"]);
    await doAll([]);
    const second = await retry(id);
    await doAll(["r1"]);
    await doAll([]);
    const third = await retry(second.id);
    expect(await namesOf(third.id)).toEqual(["r1"]);
    await doAll([]);
    const [report] = await runner.lease();
    expect(report && actionOf(report).outputs).toHaveLength(3);
  });

  test("leaves out what was stopped", async () => {
    const { id } = await workflows.start(await workflows.make(reported), { parameters });
    const [, , last] = await workflows.actions(id);
    await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: last?.id ?? "" });
    await doAll(["r0"]);
    await doAll([]);
    expect(await namesOf((await retry(id)).id)).toEqual(["r0"]);
  });

  test("is refused while the execution has not ended, and when nothing of it failed", async () => {
    const { id } = await workflows.start(await workflows.make(reported), { parameters });
    const refused = async (phase: string) => {
      await expect(retry(id)).rejects.toMatchObject({
        reason: ErrorReason.PHASE_UNSUITABLE,
        metadata: { resource: "workflow execution", phase },
      });
    };
    await refused("PENDING");
    const [work] = await runner.lease();
    await refused("RUNNING");
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await refused("STOPPING");
    if (work) await runner.finish(work, Outcome.STOPPED);
    await refused("STOPPED");
  });

  test("is refused where a start is", async () => {
    const workflowId = await workflows.make(reported);
    const { id } = await workflows.start(workflowId, { parameters });
    await doAll(["r0"]);
    await doAll([]);
    await workflows.updateWorkflow({ workflowId, disabled: true });
    await expect(retry(id)).rejects.toMatchObject({ reason: ErrorReason.WORKFLOW_DISABLED });
    await workflows.deleteWorkflow({ workflowId });
    await expect(retry(id)).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
  });

  test("is no firing of the trigger: neither its ledger nor its overlap policy knows of it", async () => {
    const { id } = await workflows.start(await workflows.make(reported), { parameters });
    await doAll(["r0"]);
    await doAll([]);
    const again = await retry(id);
    expect((await workflows.listWorkflowTriggerEvents({})).triggerEvents).toHaveLength(1);
    const row = await builderOf(testStore.store.reader)
      .selectFrom("workflow_execution")
      .select("trigger_index")
      .where("id", "=", again.id)
      .executeTakeFirst();
    expect(row).toEqual({ trigger_index: null });
  });
});
