import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { openTestStore, operationsOf, START_MS, type TestStore } from "../../harness/test-store.ts";
import { insertRun } from "./workflow-run.ts";

let testStore: TestStore;
let caller: Caller;
let ids: string[];

const operations = (of: Caller) =>
  operationsOf(
    WorkflowContract,
    new WorkflowService({ ...testStore.deps, draining: new AbortController().signal }),
    of,
  );

async function make(of: Caller): Promise<string> {
  const step = { step: { case: "task", value: { command: "true" } } } as const;
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [step] };
  return (await operations(of).createWorkflow({ name: "Nightly", action })).workflow?.id ?? "";
}

/** Executions that finished at the full milliseconds from START_MS on, of two workflows. */
beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  const stranger = await testStore.createOrganization("island");
  ids = [await make(caller), await make(caller), await make(caller)];
  const [one = "", other = ""] = ids;
  const run = (id: string, at: number, phase: Phase, failed = false) =>
    insertRun(testStore, caller, id, { phase, startedAt: START_MS, finishedAt: START_MS + at, failed });
  await run(one, 0, Phase.COMPLETED);
  await run(one, 1, Phase.COMPLETED, true);
  await run(one, 2, Phase.STOPPED);
  await run(other, 2, Phase.STOPPED, true);
  await run(other, 3, Phase.COMPLETED);
  await run(other, 4, Phase.COMPLETED);
  await insertRun(testStore, caller, one, { phase: Phase.RUNNING, startedAt: START_MS, finishedAt: null });
  const theirs = await make(stranger);
  await insertRun(testStore, stranger, theirs, { phase: Phase.COMPLETED, startedAt: START_MS, failed: true });
});
afterAll(() => testStore.close());

async function summary(from: object, until: object, workflowIds: string[] = []) {
  const { successfulCount, failedCount, totalCount, totalWorkflowsInOrganization } = await operations(
    caller,
  ).getWorkflowExecutionSummary({ filter: { dateRange: { startTime: from, endTime: until }, workflowIds } });
  expect(totalWorkflowsInOrganization).toBe(3n);
  return [successfulCount, failedCount, totalCount].map(Number);
}

const at = (offset: number, nanos = 0) => ({
  ...timestampFromMs(START_MS + offset),
  ...(nanos && { nanos }),
});

test("the summary counts what finished: successes, failures, and stopped ones in the total alone", async () => {
  expect(await summary(at(0), at(100))).toEqual([3, 1, 6]);
});

test("it counts from the beginning of the span, itself included, to its end, itself excluded", async () => {
  expect(await summary(at(0), at(4))).toEqual([2, 1, 5]);
  expect(await summary(at(1), at(2))).toEqual([0, 1, 1]);
  expect(await summary(at(0, 1), at(100))).toEqual([2, 1, 5]);
  expect(await summary(at(0), at(0, 1))).toEqual([1, 0, 1]);
});

test("a span that ends where it begins, or before, holds nothing", async () => {
  expect(await summary(at(2), at(2))).toEqual([0, 0, 0]);
  expect(await summary(at(3), at(1))).toEqual([0, 0, 0]);
});

test("it is narrowed to workflows, of which those of another organization are none", async () => {
  expect(await summary(at(0), at(100), ids.slice(0, 1))).toEqual([1, 1, 3]);
  expect(await summary(at(0), at(100), ids.slice(0, 2))).toEqual([3, 1, 6]);
  expect(await summary(at(0), at(100), ids.slice(2))).toEqual([0, 0, 0]);
});

test("times that JSON cannot say are refused by name", async () => {
  const never = { seconds: 253_402_300_800n };
  for (const [from, until, field] of [
    [never, at(0), "startTime"],
    [at(0), never, "endTime"],
  ] as const) {
    await expect(summary(from, until)).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: `filter.dateRange.${field}` },
    });
  }
});
