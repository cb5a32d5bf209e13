import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ListEnvironmentsRequestSchema } from "#gen/service/v1/environment_service_pb.js";
import { ListMembersRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import {
  ListWorkflowExecutionsRequestSchema,
  ListWorkflowsRequestSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { listEnvironments } from "../../../src/services/environment/environment-service.ts";
import { listMembers } from "../../../src/services/identity/member-list.ts";
import { listWorkflowExecutions } from "../../../src/services/workflow/execution/workflow-execution-list.ts";
import { listWorkflows } from "../../../src/services/workflow/workflow-service.ts";
import type { SqliteStore } from "../../../src/store/sqlite/open.ts";
import { searching } from "../../../src/store/sqlite/search/searching.ts";
import type { Store } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { workflowsOf } from "../workflow/running-workflow.ts";

let made: TestStore;
let caller: Caller;
beforeAll(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  const workflows = workflowsOf(made, caller);
  await workflows.start(await workflows.make({ name: "Harbour lights" }));
  const services = servicesOf(made, caller);
  await services.runnerWithClass("north");
  await services.use(await services.project("harbour"));
});
afterAll(() => made.close());

/** Dependencies whose main thread reads no row, and which note what is asked of the thread of searches. */
function watched() {
  const asked: string[] = [];
  const search = ((name, scope, parameters, signal) => {
    asked.push((parameters as { sql: string }).sql);
    return made.search(name, scope, parameters, signal);
  }) as SqliteStore["search"];
  const reader = new Proxy(made.store.reader, {
    get() {
      throw new Error("the main thread was asked for rows");
    },
  });
  const store = { ...made.store, reader, searcher: (scope) => searching({ search }, scope) } as Store;
  return { asked, deps: { ...made.deps, store } };
}

const count = { include: true };
type Search = (deps: TestStore["deps"], search: string) => Promise<readonly unknown[]>;
const LISTS: Readonly<Record<"executions" | "workflows" | "environments" | "members", Search>> = {
  async executions(deps, search) {
    const req = create(ListWorkflowExecutionsRequestSchema, { filter: { search } });
    return (await listWorkflowExecutions(deps, caller, req)).workflowExecutions;
  },
  async workflows(deps, search) {
    const req = create(ListWorkflowsRequestSchema, { filter: { search }, count });
    return (await listWorkflows(deps, caller, req)).workflows;
  },
  async environments(deps, search) {
    const req = create(ListEnvironmentsRequestSchema, { filter: { search }, count });
    return (await listEnvironments(deps, caller, req, "any")).environments;
  },
  async members(deps, search) {
    const req = create(ListMembersRequestSchema, { filter: { search }, count });
    return (await listMembers(deps, caller, req)).members;
  },
};

test.each(Object.entries(LISTS))(
  "a search of %s tests rows outside the main thread, and can be ended",
  async (_, list) => {
    const { asked, deps } = watched();
    expect(await list(deps, "absent from every row")).toEqual([]);
    expect(asked.length).toBeGreaterThan(0);
    for (const sql of asked) if (sql.includes("instr(")) expect(sql).toContain("in_time()");
    expect(asked.some((sql) => sql.includes("instr("))).toBe(true);
  },
);

test("a search finds what was written before it", async () => {
  const { deps } = watched();
  expect(await LISTS.executions(deps, "harbour")).toHaveLength(1);
  expect(await LISTS.workflows(deps, "harbour")).toHaveLength(1);
  expect(await LISTS.members(deps, caller.subject.id)).toHaveLength(1);
});
