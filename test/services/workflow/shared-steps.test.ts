import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { action, actionOf, overRepositories, runnerOf, task, workflowsOf } from "./running-workflow.ts";

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

test("the steps of an execution are stored once, whatever its actions did, and each action is answered with them", async () => {
  const workflows = workflowsOf(made, caller);
  const runner = await runnerOf(made, caller);
  const command = `echo ${"x".repeat(15_000)}`;
  const { id } = await workflows.start(
    await workflows.make({ triggers: [overRepositories(4)], action: action(4, 4, task(command)) }),
  );
  const [done, failed, running] = await runner.lease(3);
  if (!done || !failed || !running) throw new Error("not all of the work was given");
  expect(actionOf(done).steps).toMatchObject([{ step: { value: { command } } }]);
  await runner.complete(done);
  await runner.fail(failed);
  const rows = await builderOf(made.store.reader)
    .selectFrom("workflow_action")
    .select(["body", "progress"])
    .where("execution_id", "=", id)
    .execute();
  expect(rows).toHaveLength(4);
  for (const row of rows) expect(JSON.stringify(row)).not.toContain("xxx");
  const { audit } = await made.history(caller);
  const ofActions = audit.filter(({ subject_type }) => subject_type === "workflow_action");
  for (const { diff } of ofActions) expect(diff).not.toContain("xxx");
  for (const answered of await workflows.actions(id)) {
    expect(answered.status?.stepStatuses).toMatchObject([{ step: { step: { value: { command } } } }]);
  }
});
