import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import Database from "better-sqlite3";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { ROWS_PER_RUN } from "../../../src/store/prepared.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { testOnSqlite } from "../../harness/engine.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { action, overRepositories, type Workflows, workflowsOf } from "./running-workflow.ts";

const ACTIONS = 200;

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  workflows = workflowsOf(made, caller);
});
afterEach(() => made.close());

test("a workflow over many projects is made and started without reading them", async () => {
  const { project } = servicesOf(made, caller);
  const ids = [await project("first"), await project("second"), await project("third")];
  // A statement that reads one of those that are not given to a runner yet fails from now on.
  await made.store.write(SYSTEM, "test", async ({ db }) => {
    for (const [index, name] of ["second", "third"].entries()) {
      const body = JSON.stringify({ metadata: { name }, unreadable: true });
      await builderOf(db)
        .updateTable("project")
        .set({ body })
        .where("id", "=", ids[index + 1] ?? "")
        .execute();
    }
  });
  const context = { projects: { projectIds: ids } };
  const workflowId = await workflows.make({ triggers: [{ manual: {}, context }], action: action(1, 3) });
  for (const more of [{}, { contextOverride: context }]) {
    const { id } = await workflows.start(workflowId, more);
    const names = (await workflows.actions(id)).map(({ metadata }) => metadata?.actionName);
    expect(names).toEqual(["first", "second", "third"]);
  }
});

testOnSqlite("it counts calls of that engine's driver")(
  "the rows and records of a start's actions are inserted many a statement",
  async () => {
    const triggers = [overRepositories(ACTIONS)];
    const workflowId = await workflows.make({ triggers, action: action(1, ACTIONS) });
    const before = await made.history(caller);
    const run = jest.spyOn(Object.getPrototypeOf(new Database(":memory:").prepare("select 1")), "run");
    await workflows.start(workflowId);
    const statements = run.mock.calls.length;
    run.mockRestore();
    // Each action has a row, an audit row and an event.
    const { audit, events } = await made.history(caller);
    expect(audit.length - before.audit.length).toBeGreaterThan(ACTIONS);
    expect(events.length - before.events.length).toBeGreaterThan(ACTIONS);
    expect(statements).toBeGreaterThan((3 * ACTIONS) / ROWS_PER_RUN);
    expect(statements).toBeLessThan(ACTIONS / 2);
  },
);
