import { fromJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import {
  CreateWorkflowRequestSchema,
  WorkflowService as WorkflowContract,
} from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { continueStops } from "../../../src/jobs/stops.ts";
import { removeDeletedWorkflows } from "../../../src/jobs/workflow-removal.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { appendLog } from "../../../src/store/workflow/step-log.ts";
import { findAction } from "../../../src/store/workflow/workflow-action.ts";
import { findOpenExecutionIds } from "../../../src/store/workflow/workflow-execution.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { openTestStore, operationsOf, START_MS, type TestStore } from "../../harness/test-store.ts";
import { insertRun } from "./workflow-run.ts";

const TABLES = [
  "workflow",
  "workflow_secret",
  "workflow_schedule",
  "workflow_execution",
  "workflow_trigger_event",
] as const;

let testStore: TestStore;
let caller: Caller;
let workflows: ReturnType<typeof operations>;
beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  workflows = operations(caller);
});
afterAll(() => testStore.close());

const operations = (of: Caller) =>
  operationsOf(
    WorkflowContract,
    new WorkflowService({ ...testStore.deps, draining: new AbortController().signal }),
    of,
  );

/** A workflow by the clock and by hand. */
async function make(repoUrls = ["https://git.example.org/team/app.git"]): Promise<string> {
  const context = { repositories: { repositoryUrls: { repoUrls } } };
  const req = fromJson(CreateWorkflowRequestSchema, {
    name: "Nightly",
    triggers: [
      { time: { cronExpression: "0 4 * * *" }, context },
      { manual: {}, context },
    ],
    action: { limits: { maxParallel: 1, maxTotal: repoUrls.length }, steps: [{ task: { command: "true" } }] },
  });
  return (await workflows.createWorkflow(req)).workflow?.id ?? "";
}

/** How many rows of each table are a workflow's. */
async function rowsOf(id: string): Promise<number[]> {
  const counts: number[] = [];
  for (const table of TABLES) {
    const column = table === "workflow" ? "id" : "workflow_id";
    const rows = await builderOf(testStore.store.reader)
      .selectFrom(table)
      .selectAll()
      .where(column as never, "=", id as never)
      .execute();
    counts.push(rows.length);
  }
  return counts;
}

const remove = () => removeDeletedWorkflows(testStore.store);

test("a workflow that never ran disappears with the next run of the job, and others stay", async () => {
  const [gone, kept] = [await make(), await make()];
  await workflows.deleteWorkflow({ workflowId: gone });
  expect((await workflows.getWorkflow({ workflowId: gone })).workflow?.spec?.deleting).toBe(true);
  expect(await rowsOf(gone)).toEqual([1, 1, 0, 0, 0]);
  expect(await remove()).toBe(1);
  expect(await rowsOf(gone)).toEqual([0, 0, 0, 0, 0]);
  expect(await rowsOf(kept)).toEqual([1, 1, 1, 0, 0]);
  const refused = { reason: ErrorReason.NOT_FOUND };
  await expect(workflows.getWorkflow({ workflowId: gone })).rejects.toMatchObject(refused);
  await expect(workflows.deleteWorkflow({ workflowId: gone })).rejects.toMatchObject(refused);
  expect(await remove()).toBe(0);
});

test("one whose execution has not ended waits for that, and takes no changes and no starts meanwhile", async () => {
  const id = await make();
  const { workflowExecution } = await workflows.startWorkflow({ workflowId: id });
  await workflows.deleteWorkflow({ workflowId: id });
  await workflows.deleteWorkflow({ workflowId: id });
  expect(await remove()).toBe(0);
  const refused = { reason: ErrorReason.PENDING_DELETION };
  await expect(workflows.updateWorkflow({ workflowId: id, name: "x" })).rejects.toMatchObject(refused);
  await expect(workflows.startWorkflow({ workflowId: id })).rejects.toMatchObject(refused);
  await workflows.cancelWorkflowExecution({ workflowExecutionId: workflowExecution?.id ?? "" });
  expect(await remove()).toBe(1);
  expect(await rowsOf(id)).toEqual([0, 0, 0, 0, 0]);
});

test("force cancels what runs, also when the workflow is marked already", async () => {
  const id = await make();
  for (let started = 0; started < 3; started++) await workflows.startWorkflow({ workflowId: id });
  await workflows.deleteWorkflow({ workflowId: id });
  const open = () => findOpenExecutionIds(testStore.store.reader, caller, { workflowId: id });
  expect(await open()).toHaveLength(3);
  await workflows.deleteWorkflow({ workflowId: id, force: true });
  expect(await open()).toEqual([]);
  expect(await remove()).toBe(1);
});

test("the executions go with it, however many, and each is recorded", async () => {
  const id = await make();
  const runs: string[] = [];
  for (let made = 0; made < 21; made++) {
    runs.push(await insertRun(testStore, caller, id, { phase: Phase.COMPLETED, startedAt: START_MS }));
  }
  await workflows.deleteWorkflow({ workflowId: id });
  expect(await remove()).toBe(1);
  expect(await rowsOf(id)).toEqual([0, 0, 0, 0, 0]);
  const { audit, events } = await testStore.history(caller);
  const removed = audit.filter(({ operation }) => operation === "job/workflow-removal").slice(-22);
  expect(removed.map(({ subject_id }) => subject_id)).toEqual([...runs, id]);
  expect(new Set(removed.map(({ actor_id }) => actor_id))).toEqual(new Set([SYSTEM.id]));
  expect(events.slice(-22).map(({ kind, resource_id }) => [kind, resource_id])).toEqual(
    [...runs, id].map((each) => ["deleted", each]),
  );
});

test("the logs go first and in parts, so that no other write waits for all of them", async () => {
  const repoUrls = Array.from({ length: 40 }, (_, index) => `https://git.example.org/team/r${index}.git`);
  const id = await make(repoUrls);
  const { workflowExecution } = await workflows.startWorkflow({ workflowId: id });
  const { store } = testStore;
  const actions = await builderOf(store.reader)
    .selectFrom("workflow_action")
    .select("id")
    .where("workflow_id", "=", id)
    .execute();
  await store.write(SYSTEM, "test", async (tx) => {
    for (const { id: actionId } of actions) {
      const action = await findAction(tx.db, caller, actionId);
      if (!action) throw new Error("the action is gone");
      const owner = { actionId: action.id, attempt: 1, stepIndex: 0 };
      for (let offset = 0; offset < 50; offset += 10) {
        await appendLog(tx, owner, { offset, data: Buffer.from("0123456789") });
      }
    }
  });
  await workflows.cancelWorkflowExecution({ workflowExecutionId: workflowExecution?.id ?? "" });
  await continueStops(store);
  await workflows.deleteWorkflow({ workflowId: id });
  const left: number[] = [];
  const leave = afterWrites(store, async () => void left.push(await logsLeft()));
  expect(await remove()).toBe(1);
  leave();
  expect([...new Set(left)].filter((count) => count < 200)).toEqual([100, 0]);
});

/** How many pieces of logs there are. */
async function logsLeft(): Promise<number> {
  return (await builderOf(testStore.store.reader).selectFrom("step_log").select("start").execute()).length;
}
