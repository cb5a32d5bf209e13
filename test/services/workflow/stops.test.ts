import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { continueStops } from "../../../src/jobs/stops.ts";
import { removeDeletedWorkflows } from "../../../src/jobs/workflow-removal.ts";
import { ROWS_PER_TRANSACTION } from "../../../src/services/call/row-budget.ts";
import {
  cancelExecutionsOfWorkflow,
  revokeExecutionsOfExecutor,
} from "../../../src/services/workflow/execution/execution-cancel.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { insertPendingStop } from "../../../src/store/workflow/pending-stop.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { refuse } from "../../harness/refusing-trigger.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  overRepositories,
  runnerOf,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  workflows = workflowsOf(made, caller);
  runner = await runnerOf(made, caller);
});
afterEach(() => made.close());

const ACTIONS = 2 * ROWS_PER_TRANSACTION + 10;
const many = (): Promise<string> =>
  workflows.make({ triggers: [overRepositories(ACTIONS)], action: action(2, 1_000) });
const goOn = () => continueStops(made.store);
const stopsLeft = () => builderOf(made.store.reader).selectFrom("pending_stop").selectAll().execute();

/** Records what each write but the first did: how many rows the record has more than before it. */
function watchWrites() {
  const totals: number[] = [];
  const leave = afterWrites(made.store, async () => {
    totals.push((await made.history(caller)).audit.length);
  });
  return () => {
    leave();
    return totals.slice(1).map((total, index) => total - (totals[index] ?? 0));
  };
}

describe("a stop of many actions", () => {
  test("goes on in turns of a bounded number of rows, and ends the execution with the last", async () => {
    const { id } = await workflows.start(await many());
    await runner.lease(1);
    const rows = watchWrites();
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPING } });
    expect(await stopsLeft()).toHaveLength(1);
    expect(await goOn()).toBe(2);
    for (const each of rows()) expect(each).toBeLessThanOrEqual(ROWS_PER_TRANSACTION + 2);
    expect(await stopsLeft()).toEqual([]);
    expect(await workflows.execution(id)).toMatchObject({
      status: {
        phase: Phase.STOPPING,
        pendingActionCount: 0,
        runningActionCount: 1,
        stoppedActionCount: ACTIONS - 1,
      },
    });
    await runner.fallSilent();
    expect(await workflows.execution(id)).toMatchObject({
      status: { phase: Phase.STOPPED, runningActionCount: 0, stoppedActionCount: ACTIONS },
    });
  });

  test("gives out no more work between two turns, and ends at once when nothing ran", async () => {
    const { id } = await workflows.start(await many());
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect(await runner.lease(10)).toEqual([]);
    expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.PENDING } });
    await goOn();
    expect(await workflows.execution(id)).toMatchObject({
      status: { phase: Phase.STOPPED, stoppedActionCount: ACTIONS },
    });
    expect((await workflows.execution(id)).metadata?.finishedAt).toBeDefined();
  });

  test("goes on where an interrupted run left it, and ends at a sign that the server drains", async () => {
    const { id } = await workflows.start(await many());
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect(await continueStops(made.store, AbortSignal.abort())).toBe(0);
    const before = (await workflows.execution(id)).status?.stoppedActionCount ?? 0;
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(ACTIONS);
    await goOn();
    expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPED } });
  });

  test("of an executor that was cut off waits for no runner, and leaves alone what starts later", async () => {
    const workflowId = await many();
    const { id } = await workflows.start(workflowId);
    await runner.lease(2);
    const cut = await made.store.write(SYSTEM, "test", (tx) =>
      revokeExecutionsOfExecutor(tx, caller, caller.subject.id),
    );
    expect(cut).toBe(1);
    const later = await workflows.start(await workflows.make());
    await goOn();
    expect(await workflows.execution(id)).toMatchObject({
      status: { phase: Phase.STOPPED, stoppedActionCount: ACTIONS },
    });
    expect(await workflows.execution(later.id)).toMatchObject({ status: { phase: Phase.PENDING } });
  });

  test("shares the rows of one turn with others of the same write", async () => {
    const workflowIds = [await many(), await many()];
    const started = [];
    for (const workflowId of workflowIds) started.push(await workflows.start(workflowId));
    const before = (await made.history(caller)).audit.length;
    await made.store.write(SYSTEM, "test", async (tx) => {
      for (const workflowId of workflowIds) await cancelExecutionsOfWorkflow(tx, caller, workflowId);
    });
    expect((await made.history(caller)).audit.length - before).toBeLessThanOrEqual(ROWS_PER_TRANSACTION + 2);
    expect(await stopsLeft()).toHaveLength(2);
    await goOn();
    for (const { id } of started)
      expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPED } });
  });

  test("of one that cannot be stopped holds up no other, and is reported", async () => {
    const [broken, sound] = [await workflows.start(await many()), await workflows.start(await many())];
    for (const { id } of [broken, sound])
      await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await made.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("workflow_execution")
        .set({ body: "{" })
        .where("id", "=", broken.id)
        .execute(),
    );
    await expect(goOn()).rejects.toThrow("could not be stopped");
    expect(await workflows.execution(sound.id)).toMatchObject({ status: { phase: Phase.STOPPED } });
    expect(await stopsLeft()).toMatchObject([{ target_id: broken.id }]);
  });
});

test("stops that fail keep no other from its turn, however many they are", async () => {
  const { id } = await workflows.start(await many());
  await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
  const failing = Array.from({ length: 201 }, (_, index) => `0-${index}`);
  await made.store.write(SYSTEM, "test", async (tx) => {
    const { organizationId } = caller;
    for (const targetId of failing) {
      await insertPendingStop(tx, { organizationId }, { mode: "cancel", target: "execution", targetId });
    }
  });
  await refuse(made.dataDir, {
    name: "stays",
    on: "delete on pending_stop",
    when: "old.target_id like '0-%'",
    message: "this one stays",
  });
  const failure = await goOn().catch((error: unknown) => error);
  expect((failure as AggregateError).errors).toHaveLength(failing.length);
  expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPED } });
  expect(await stopsLeft()).toHaveLength(failing.length);
});

test("a stop gets past any number of executions that wait for their runners", async () => {
  const executions = ROWS_PER_TRANSACTION + 4;
  const workflowId = await workflows.make();
  const ids: string[] = [];
  for (let started = 0; started < executions; started += 1) {
    ids.push((await workflows.start(workflowId)).id);
  }
  expect(await runner.lease(executions)).toHaveLength(executions);
  await workflows.deleteWorkflow({ workflowId, force: true });
  expect(await stopsLeft()).toHaveLength(1);
  // Ends a job that makes no progress.
  const draining = new AbortController();
  let writes = 0;
  const leave = afterWrites(made.store, () => {
    writes += 1;
    if (writes > executions) draining.abort();
  });
  await continueStops(made.store, draining.signal);
  leave();
  expect(await stopsLeft()).toEqual([]);
  for (const id of ids) {
    expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPING } });
  }
  await runner.fallSilent();
  for (const id of ids) {
    expect(await workflows.execution(id)).toMatchObject({ status: { phase: Phase.STOPPED } });
  }
});

test("the forced deletion of a workflow with much that runs goes on in turns to the last row", async () => {
  const workflowId = await many();
  for (let started = 0; started < 3; started += 1) await workflows.start(workflowId);
  const rows = watchWrites();
  await workflows.deleteWorkflow({ workflowId, force: true });
  expect(await removeDeletedWorkflows(made.store)).toBe(0);
  expect(await goOn()).toBeGreaterThan(3);
  for (const each of rows()) expect(each).toBeLessThanOrEqual(ROWS_PER_TRANSACTION + 10);
  const actionsLeft = async () => {
    const found = await builderOf(made.store.reader).selectFrom("workflow_action").select("id").execute();
    return found.length;
  };
  const counts = [await actionsLeft()];
  const leave = afterWrites(made.store, async () => void counts.push(await actionsLeft()));
  expect(await removeDeletedWorkflows(made.store)).toBe(1);
  leave();
  for (const [index, count] of counts.slice(1).entries()) {
    expect((counts[index] ?? 0) - count).toBeLessThanOrEqual(100);
  }
  expect(counts.at(-1)).toBe(0);
});
