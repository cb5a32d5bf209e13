import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { action, type Workflows, workflowsOf } from "./running-workflow.ts";

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.found("harbour");
  workflows = workflowsOf(made, caller);
});
afterEach(() => made.close());

test("a workflow over many projects is made and started without reading them", async () => {
  const { project } = servicesOf(made, caller);
  const ids = [await project("first"), await project("second"), await project("third")];
  // Whoever reads one of those that are not given to a runner yet fails from now on.
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
