import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { pruneTriggerEntries } from "../../../src/jobs/retention/ledger-pruning.ts";
import { pruneDeliveries } from "../../../src/jobs/retention/trigger-pruning.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { findDeliveryEvents, insertDelivery } from "../../../src/store/workflow/webhook-delivery.ts";
import { findWorkflow } from "../../../src/store/workflow/workflow.ts";
import { DAY_MS, openTestStore, START_MS, type TestStore } from "../../harness/test-store.ts";
import { REPOSITORY, type TriggeredWorkflows, triggeredWorkflows } from "./triggered-workflow.ts";

let testStore: TestStore;
let caller: Caller;
let own: TriggeredWorkflows;
let workflowId: string;
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = triggeredWorkflows(testStore, caller);
  workflowId = await own.create([{ trigger: { case: "manual", value: {} }, context: REPOSITORY }]);
});
afterEach(() => testStore.close());

const handle = async () => {
  const workflow = await findWorkflow(testStore.store.reader, caller, workflowId);
  if (!workflow) throw new Error("the workflow is gone");
  return workflow.id;
};
const note = (deliveryId: string, eventIds: readonly string[]) =>
  testStore.store.write(SYSTEM, "test", async (tx) =>
    insertDelivery(tx, { workflowId: await handle(), deliveryId }, eventIds),
  );
const prune = (keep = { days: 30, count: 0 }) =>
  pruneTriggerEntries(testStore.store, caller, keep, testStore.clock.now);
const forget = () => pruneDeliveries(testStore.store, testStore.clock.now);

test("the ledger is kept for 30 days, and leaves executions and the audit trail as they are", async () => {
  await own.operations.startWorkflow({ workflowId });
  testStore.clock.now += 1;
  await own.operations.startWorkflow({ workflowId });
  const [old, young] = await own.ledger(workflowId);
  const history = await testStore.history(caller);
  testStore.clock.now = START_MS + 30 * DAY_MS;
  expect(await prune()).toBe(0);
  testStore.clock.now += 1;
  expect(await prune()).toBe(1);
  expect(await own.ledger(workflowId)).toEqual([young]);
  expect(old).not.toEqual(young);
  expect(await own.executions(workflowId)).toHaveLength(2);
  expect(await testStore.history(caller)).toEqual(history);
});

test("more than one batch goes in one run", async () => {
  await own.operations.startWorkflow({ workflowId });
  await testStore.store.write(SYSTEM, "test", async ({ db }) => {
    const entry = await builderOf(db)
      .selectFrom("workflow_trigger_event")
      .selectAll()
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: 2_000 }, () => ({ ...entry, id: testStore.newId() }));
    await builderOf(db).insertInto("workflow_trigger_event").values(copies).execute();
  });
  testStore.clock.now += 31 * DAY_MS;
  expect(await prune()).toBe(2_001);
  expect(await own.ledger(workflowId)).toEqual([]);
});

test("of each workflow the newest entries are kept, and those of the last day", async () => {
  const other = await own.create([{ trigger: { case: "manual", value: {} }, context: REPOSITORY }]);
  for (const id of [workflowId, workflowId, other, workflowId])
    await own.operations.startWorkflow({ workflowId: id });
  const [first, second, third] = await own.ledger(workflowId);
  testStore.clock.now += DAY_MS;
  expect(await prune({ days: 0, count: 2 })).toBe(0);
  testStore.clock.now += 1;
  expect(await prune({ days: 0, count: 3 })).toBe(0);
  expect(await prune({ days: 0, count: 2 })).toBe(1);
  expect(await own.ledger(workflowId)).toEqual([second, third]);
  expect(first).not.toEqual(second);
  expect(await own.ledger(other)).toHaveLength(1);
});

test("ids of deliveries are forgotten after 24 hours", async () => {
  await note("first", ["entry"]);
  testStore.clock.now += 1;
  await note("second", []);
  testStore.clock.now = START_MS + DAY_MS - 1;
  expect(await forget()).toBe(0);
  testStore.clock.now += 1;
  expect(await forget()).toBe(1);
  const { reader } = testStore.store;
  expect(
    await findDeliveryEvents(reader, { workflowId: await handle(), deliveryId: "first" }, 0),
  ).toBeUndefined();
  expect(await findDeliveryEvents(reader, { workflowId: await handle(), deliveryId: "second" }, 0)).toEqual(
    [],
  );
});

test("an id that is too old to count is taken again before it is forgotten", async () => {
  await note("first", ["old"]);
  testStore.clock.now += DAY_MS;
  const found = async () =>
    findDeliveryEvents(
      testStore.store.reader,
      { workflowId: await handle(), deliveryId: "first" },
      testStore.clock.now - DAY_MS,
    );
  expect(await found()).toBeUndefined();
  await note("first", ["new"]);
  expect(await found()).toEqual(["new"]);
});
