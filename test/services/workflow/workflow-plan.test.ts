import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { sql } from "kysely";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { refuse } from "../../harness/refusing-trigger.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  actionOf,
  overRepositories,
  runnerOf,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

/** What a transition may read or write of an execution's row. */
const SMALL_BYTES = 8_192;

/** Steps of 3 bytes a character: with a report they make a workflow of the largest size. */
const COMMAND = `echo ${"€".repeat(19_000)}`;
const STEPS = Array.from({ length: 50 }, () => task(COMMAND));
const REPORT_STEPS = STEPS.slice(0, 20);

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

const largest = () =>
  workflows.make({
    triggers: [overRepositories(3)],
    action: action(3, 3, ...STEPS),
    report: action(1, 1, ...REPORT_STEPS),
  });

const sizes = async (id: string) => {
  const [row] = await builderOf(made.store.reader)
    .selectFrom("workflow_execution")
    .innerJoin("workflow_plan", "execution_id", "id")
    .select([
      sql<number>`octet_length(workflow_execution.body)`.as("body"),
      sql<number>`octet_length(workflow_plan.body)`.as("plan"),
    ])
    .where("id", "=", id)
    .execute();
  return row;
};

test("an execution of the largest workflow goes from lease to end without reading or writing its plan", async () => {
  const { id, spec } = await workflows.start(await largest());
  const { plan = 0 } = (await sizes(id)) ?? {};
  expect(plan).toBeGreaterThan(3.9e6);
  // A statement that reads the stored plan from now on fails, and so does one that writes it.
  await made.store.write(SYSTEM, "test", async ({ db }) => {
    await builderOf(db)
      .updateTable("workflow_plan")
      .set({ body: "{" })
      .where("execution_id", "=", id)
      .execute();
  });
  await refuse(made.dataDir, { name: "unchanging", on: "update on workflow_plan", message: "written" });
  const works = [...(await runner.lease()), ...(await runner.lease()), ...(await runner.lease())];
  expect(works.map((work) => actionOf(work).steps.length)).toEqual([50, 50, 50]);
  for (const work of works) {
    await runner.complete(work);
    expect((await sizes(id))?.body).toBeLessThan(SMALL_BYTES);
  }
  const [report] = await runner.lease();
  if (!report) throw new Error("the report was not given");
  expect(actionOf(report).steps).toHaveLength(20);
  await runner.complete(report);
  const ended = await workflows.execution(id);
  expect(ended).toMatchObject({ status: { phase: Phase.COMPLETED, doneActionCount: 4 } });
  expect(ended.spec).toEqual({ ...spec, session: ended.spec?.session });
  expect((await sizes(id))?.body).toBeLessThan(SMALL_BYTES);
});

test("the record of an execution tells its plan when it begins, and not at each transition", async () => {
  const { id } = await workflows.start(await largest());
  await runner.lease(1);
  const { audit } = await made.history(caller);
  const bytes = audit.filter(({ subject_id }) => subject_id === id).map(({ diff }) => diff.length);
  expect(bytes).toHaveLength(2);
  expect(bytes[0]).toBeGreaterThan(1e6);
  expect(bytes[1]).toBeLessThan(SMALL_BYTES);
});
