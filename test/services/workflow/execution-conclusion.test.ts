import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionConclusion as Conclusion,
  WorkflowExecutionPhase as Phase,
  type WorkflowExecution_Status,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  actionOf,
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

const start = async (actions: number) => {
  const workflowId = await workflows.make({
    triggers: [overRepositories(actions)],
    action: action(25, 1000),
  });
  return (await workflows.start(workflowId)).id;
};
const statusOf = async (id: string): Promise<WorkflowExecution_Status> => {
  const { status } = await workflows.execution(id);
  if (!status) throw new Error("the execution has no status");
  return status;
};

/** Does all the work there is; the actions of these repositories fail. */
async function doAll(failing: (name: string) => boolean): Promise<void> {
  for (;;) {
    const works = await runner.lease(25);
    if (works.length === 0) return;
    for (const work of works) {
      const fails = failing(actionOf(work).environment?.metadata?.name ?? "");
      await (fails ? runner.fail(work) : runner.complete(work));
    }
  }
}

describe("the conclusion of an execution", () => {
  test.each<[string, (name: string) => boolean, Conclusion]>([
    ["succeeded when no action failed", () => false, Conclusion.SUCCEEDED],
    ["is a partial failure when some did", (name) => name === "r1", Conclusion.PARTIALLY_FAILED],
    ["is a failure when all did", () => true, Conclusion.FAILED],
  ])("%s, and there is none before its end", async (_, failing, conclusion) => {
    const id = await start(3);
    expect((await statusOf(id)).conclusion).toBe(Conclusion.UNSPECIFIED);
    await doAll(failing);
    expect(await statusOf(id)).toMatchObject({ phase: Phase.COMPLETED, conclusion });
    const { workflowExecutions } = await workflows.listWorkflowExecutions({
      filter: { workflowExecutionIds: [id] },
    });
    expect(workflowExecutions).toEqual([await workflows.execution(id)]);
  });

  test("is that it was stopped, whatever its actions had come to", async () => {
    const id = await start(3);
    const [work] = await runner.lease();
    if (!work) throw new Error("no work");
    await runner.fail(work);
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect(await statusOf(id)).toMatchObject({ phase: Phase.STOPPED, conclusion: Conclusion.STOPPED });
  });

  test("is a success without actions, at once", async () => {
    const trigger = { manual: {}, context: { projects: {} } };
    const { status } = await workflows.start(await workflows.make({ triggers: [trigger] }));
    expect(status).toMatchObject({ conclusion: Conclusion.SUCCEEDED, failures: [], warnings: [] });
  });
});

describe("the failures of an execution", () => {
  test("are those of its actions, each with the action that it comes from", async () => {
    const id = await start(3);
    await doAll((name) => name !== "r1");
    const actions = (await workflows.actions(id)).filter(({ status }) => status?.failures.length);
    const { failures, failureMessage } = await statusOf(id);
    expect(failures).toEqual(
      actions.flatMap(({ id: actionId, metadata, status }) =>
        (status?.failures ?? []).map((failure) => ({
          ...failure,
          meta: {
            ...failure.meta,
            workflow_execution_action_id: actionId,
            action_name: metadata?.actionName,
          },
        })),
      ),
    );
    expect(failures.map(({ meta }) => meta.action_name)).toEqual(["r0", "r2"]);
    expect(failureMessage).toBe(failures.map(({ message }) => message).join("\n"));
  });

  test.each([9, 10, 11])("of %i failed actions are at most 10, the first", async (count) => {
    const id = await start(count);
    await doAll(() => true);
    const { failures, failedActionCount } = await statusOf(id);
    const expected = Array.from({ length: Math.min(count, 10) }, (_, index) => `r${index}`);
    expect([failures.map(({ meta }) => meta.action_name), failedActionCount]).toEqual([expected, count]);
  });

  test("are not in its own progress, so that the record tells each change once", async () => {
    const id = await start(1);
    await doAll(() => true);
    const row = await builderOf(testStore.store.reader)
      .selectFrom("workflow_execution")
      .select("progress")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ progress: "{}" });
  });
});

test("a warning of an action is one of its execution, while that still runs", async () => {
  const id = await start(2);
  await runner.lease();
  await runner.fallSilent();
  const { warnings, warningMessage, conclusion } = await statusOf(id);
  expect(warnings).toMatchObject([{ reason: "attempt_lost", meta: { action_name: "r0", attempt: "1" } }]);
  expect([warningMessage, conclusion]).toEqual([warnings[0]?.message, Conclusion.UNSPECIFIED]);
});
