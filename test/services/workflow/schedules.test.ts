import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  WorkflowTrigger_OverlapPolicy as Overlap,
  WorkflowExecutionPhase as Phase,
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict as Verdict,
  type WorkflowAction,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { fireDueTimeTriggers } from "../../../src/jobs/time-triggers.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { DAY_MS, MINUTE_MS, openTestStore, START_MS, type TestStore } from "../../harness/test-store.ts";
import { REPOSITORY, type TriggeredWorkflows, triggeredWorkflows } from "./triggered-workflow.ts";

const HOUR_MS = 60 * MINUTE_MS;
const NINE = START_MS + 9 * HOUR_MS;

let testStore: TestStore;
let caller: Caller;
let own: TriggeredWorkflows;
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = triggeredWorkflows(testStore, caller);
});
afterEach(() => testStore.close());

const time = (cronExpression: string, overlapPolicy = Overlap.UNSPECIFIED) => ({
  trigger: { case: "time" as const, value: { cronExpression, overlapPolicy, timeZone: "" } },
  context: REPOSITORY,
});

/** Runs the job at an instant. */
async function fireAt(instantMs: number): Promise<void> {
  testStore.clock.now = instantMs;
  await fireDueTimeTriggers(testStore.store, instantMs);
}

/** Gives a workflow a command that no write would take, as an older release stored it. */
const storeCommand = (id: string, command: string) =>
  testStore.store.write(SYSTEM, "test", async ({ db }) => {
    const row = builderOf(db).selectFrom("workflow").select("body").where("id", "=", id);
    const body = JSON.parse((await row.executeTakeFirstOrThrow()).body);
    body.spec.action.steps[0].task.command = command;
    const changed = { body: JSON.stringify(body) };
    await builderOf(db).updateTable("workflow").set(changed).where("id", "=", id).execute();
  });

async function actionOf(workflowId: string): Promise<WorkflowAction> {
  const { workflow } = await own.operations.getWorkflow({ workflowId });
  if (!workflow?.spec?.action) throw new Error("the workflow has no action");
  return workflow.spec.action;
}

const verdicts = (entries: readonly WorkflowTriggerEvent[]) => entries.map(({ verdict }) => verdict);

describe("an instant", () => {
  test("starts one execution as the executor when it comes, and none before or again", async () => {
    const id = await own.create([time("0 9 * * *")]);
    await fireAt(NINE - 1);
    expect(await own.ledger(id)).toEqual([]);
    await fireAt(NINE);
    await fireAt(NINE + 1);
    await fireAt(NINE + DAY_MS - 1);
    const [execution, ...others] = await own.executions(id);
    expect(others).toEqual([]);
    expect(execution?.metadata?.creator).toEqual(caller.subject);
    expect(execution?.spec?.trigger).toMatchObject({
      trigger: { case: "time", value: { triggeredAt: { seconds: BigInt(NINE / 1000), nanos: 0 } } },
      context: REPOSITORY,
    });
    const ledger = await own.ledger(id);
    expect(ledger).toMatchObject([
      {
        verdict: Verdict.STARTED,
        source: Source.TIME,
        triggerIndex: 0,
        reason: "",
        workflowExecutionId: execution?.id,
      },
    ]);
    expect(ledger.map(({ at }) => at && timestampMs(at))).toEqual([NINE]);
    await fireAt(NINE + DAY_MS);
    expect(await own.executions(id)).toHaveLength(2);
    const { audit } = await testStore.history(caller);
    const started = audit.find(({ subject_id }) => subject_id === execution?.id);
    expect([started?.actor_id, started?.operation]).toEqual([SYSTEM.id, "job/schedules"]);
  });

  test("of two runs of the job at once is one run's", async () => {
    const id = await own.create([time("0 9 * * *"), time("0 9 * * *")]);
    testStore.clock.now = NINE;
    const { store } = testStore;
    await Promise.all([
      fireDueTimeTriggers(store, NINE),
      fireDueTimeTriggers(store, NINE),
      fireDueTimeTriggers(store, NINE),
    ]);
    expect((await own.ledger(id)).map(({ triggerIndex, verdict }) => [triggerIndex, verdict])).toEqual([
      [0, Verdict.STARTED],
      [1, Verdict.STARTED],
    ]);
    expect(await own.executions(id)).toHaveLength(2);
  });

  test("that comes due again, as the clock was set back, is a duplicate of the first", async () => {
    const id = await own.create([time("0 9 * * *")]);
    await fireAt(NINE);
    testStore.clock.now = NINE - MINUTE_MS;
    for (const disabled of [true, false]) await own.operations.updateWorkflow({ workflowId: id, disabled });
    expect(await own.nextInstants(id)).toEqual([NINE]);
    await fireAt(NINE);
    const [first, second] = await own.ledger(id);
    expect([first?.verdict, second?.verdict]).toEqual([Verdict.STARTED, Verdict.DUPLICATE]);
    expect(second?.workflowExecutionId).toBe(first?.workflowExecutionId);
    expect(await own.executions(id)).toHaveLength(1);
    expect(await own.nextInstants(id)).toEqual([NINE + DAY_MS]);
  });

  test("has one entry that is not a duplicate, by the database itself", async () => {
    const id = await own.create([time("0 9 * * *")]);
    await fireAt(NINE);
    const again = testStore.store.write(SYSTEM, "test", async ({ db }) => {
      const row = await builderOf(db)
        .selectFrom("workflow_trigger_event")
        .selectAll()
        .executeTakeFirstOrThrow();
      expect(row.dedupe_key).toBe(`time:0:${NINE}`);
      await builderOf(db)
        .insertInto("workflow_trigger_event")
        .values({ ...row, id: testStore.newId() })
        .execute();
    });
    await expect(again).rejects.toThrow(/unique/i);
    expect(await own.ledger(id)).toHaveLength(1);
  });
});

describe("after a downtime", () => {
  test("the latest instant runs, and one entry counts those before it", async () => {
    const id = await own.create([time("* * * * *")]);
    await fireAt(START_MS + 3 * HOUR_MS + 30_000);
    const ledger = await own.ledger(id);
    expect(ledger.map(({ verdict, at }) => [verdict, at && timestampMs(at)])).toEqual([
      [Verdict.MISSED, START_MS + MINUTE_MS],
      [Verdict.STARTED, START_MS + 3 * HOUR_MS],
    ]);
    expect(ledger[0]?.reason).toBe(
      "179 instants were missed from 2026-01-01T00:01:00.000Z on; that of 2026-01-01T03:00:00.000Z is run instead",
    );
    expect(await own.executions(id)).toHaveLength(1);
    expect(await own.nextInstants(id)).toEqual([START_MS + 3 * HOUR_MS + MINUTE_MS]);
  });

  test("the only instant that came due runs late, and nothing was missed", async () => {
    const id = await own.create([time("0 9 * * *")]);
    await fireAt(NINE + 6 * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.STARTED]);
  });

  test.each([
    [2, "1 instant was missed"],
    [1_000, "999 instants were missed"],
    [1_001, "at least 1000 instants were missed"],
    [20_000, "at least 1000 instants were missed"],
  ])("of %p instants: %s", async (instants, reason) => {
    const id = await own.create([time("* * * * *")]);
    await fireAt(START_MS + instants * MINUTE_MS);
    expect((await own.ledger(id))[0]?.reason).toContain(reason);
    expect(await own.executions(id)).toHaveLength(1);
  });
});

describe("while an execution of the trigger still runs", () => {
  test.each([Overlap.UNSPECIFIED, Overlap.ALLOW])("policy %p starts another alongside it", async (policy) => {
    const id = await own.create([time("0 * * * *", policy)]);
    for (const hour of [1, 2]) await fireAt(START_MS + hour * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.STARTED, Verdict.STARTED]);
    const phases = (await own.executions(id)).map(({ status }) => status?.phase);
    expect(phases).not.toContain(Phase.STOPPED);
  });

  test("skip starts none until it has ended", async () => {
    const id = await own.create([time("0 * * * *", Overlap.SKIP)]);
    for (const hour of [1, 2]) await fireAt(START_MS + hour * HOUR_MS);
    const [first, second] = await own.ledger(id);
    expect([first?.verdict, second?.verdict]).toEqual([Verdict.STARTED, Verdict.OVERLAP]);
    expect(second?.reason).toContain(first?.workflowExecutionId);
    await own.operations.cancelWorkflowExecution({ workflowExecutionId: first?.workflowExecutionId ?? "" });
    await fireAt(START_MS + 3 * HOUR_MS);
    expect(verdicts(await own.ledger(id)).at(-1)).toBe(Verdict.STARTED);
    expect(await own.executions(id)).toHaveLength(2);
  });

  test("cancel previous stops it first", async () => {
    const id = await own.create([time("0 * * * *", Overlap.CANCEL_PREVIOUS)]);
    for (const hour of [1, 2, 3]) await fireAt(START_MS + hour * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.STARTED, Verdict.STARTED, Verdict.STARTED]);
    const phases = (await own.executions(id)).map(({ status }) => status?.phase);
    expect(phases.slice(0, 2)).toEqual([Phase.STOPPED, Phase.STOPPED]);
    expect(phases[2]).not.toBe(Phase.STOPPED);
  });

  test("executions of other triggers and by hand are none of its", async () => {
    const manual = { trigger: { case: "manual" as const, value: {} }, context: REPOSITORY };
    const id = await own.create([
      time("0 1 * * *"),
      time("0 2 * * *", Overlap.SKIP),
      time("0 3 * * *", Overlap.CANCEL_PREVIOUS),
      manual,
    ]);
    await own.operations.startWorkflow({ workflowId: id });
    for (const hour of [1, 2, 3]) await fireAt(START_MS + hour * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual(Array(4).fill(Verdict.STARTED));
    const phases = (await own.executions(id)).map(({ status }) => status?.phase);
    expect(phases).not.toContain(Phase.STOPPED);
  });
});

describe("a workflow that is off", () => {
  test("starts nothing at its instants while disabled, and begins again once it is enabled", async () => {
    const id = await own.create([time("0 * * * *")]);
    await own.operations.updateWorkflow({ workflowId: id, disabled: true });
    for (const hours of [1, 2]) await fireAt(START_MS + hours * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.DISABLED, Verdict.DISABLED]);
    testStore.clock.now = START_MS + 10 * HOUR_MS;
    await own.operations.updateWorkflow({ workflowId: id, disabled: false });
    await fireAt(START_MS + 10 * HOUR_MS + 1);
    expect(await own.ledger(id)).toHaveLength(2);
    await fireAt(START_MS + 11 * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.DISABLED, Verdict.DISABLED, Verdict.STARTED]);
    expect(await own.executions(id)).toHaveLength(1);
  });

  test("does not fire while it is pending deletion", async () => {
    const id = await own.create([time("0 * * * *")]);
    await fireAt(START_MS + HOUR_MS);
    await own.operations.deleteWorkflow({ workflowId: id });
    await fireAt(START_MS + 2 * HOUR_MS);
    expect(verdicts(await own.ledger(id))).toEqual([Verdict.STARTED]);
  });
});

describe("a time zone", () => {
  test("is what the job fires by, and a change of it begins the schedule again", async () => {
    const inBerlin = { ...time("0 9 * * *") };
    inBerlin.trigger.value.timeZone = "Europe/Berlin";
    const id = await own.create([inBerlin]);
    await fireAt(NINE - HOUR_MS - 1);
    expect(await own.ledger(id)).toEqual([]);
    await fireAt(NINE - HOUR_MS);
    expect(await own.executions(id)).toHaveLength(1);
    const inUtc = time("0 9 * * *");
    await own.operations.updateWorkflow({ workflowId: id, triggers: [inUtc] });
    await fireAt(NINE);
    expect(await own.executions(id)).toHaveLength(2);
    await fireAt(NINE - HOUR_MS + DAY_MS);
    expect(await own.executions(id)).toHaveLength(2);
  });
});

describe("the next instants of a workflow", () => {
  const answered = async (workflowId: string) => {
    const { workflow } = await own.operations.getWorkflow({ workflowId });
    return workflow?.nextInstants.map(({ triggerIndex, instants }) => [
      triggerIndex,
      instants.map(timestampMs),
    ]);
  };

  test("are answered for each time trigger, by the clock, and never stored", async () => {
    const daily = time("0 9 * * *");
    daily.trigger.value.timeZone = "Europe/Berlin";
    const byHand = { trigger: { case: "manual" as const, value: {} }, context: REPOSITORY };
    const id = await own.create([byHand, daily, time("0 0 29 2 *")]);
    const days = [0, 1, 2, 3, 4].map((day) => START_MS + 8 * HOUR_MS + day * DAY_MS);
    expect(await answered(id)).toEqual([
      [1, days],
      [2, [Date.UTC(2028, 1, 29)]],
    ]);
    testStore.clock.now = days[0] ?? 0;
    expect((await answered(id))?.[0]).toEqual([1, [...days.slice(1), (days[4] ?? 0) + DAY_MS]]);
    const rows = await builderOf(testStore.store.reader).selectFrom("workflow").select("body").execute();
    expect(rows.map(({ body }) => JSON.parse(body).nextInstants)).toEqual([[]]);
    const { workflows } = await own.operations.listWorkflows({});
    expect(workflows.map(({ nextInstants }) => nextInstants)).toEqual([[]]);
  });

  test("are none while it is disabled", async () => {
    const id = await own.create([time("0 9 * * *")]);
    const { workflow } = await own.operations.updateWorkflow({ workflowId: id, disabled: true });
    expect([workflow?.nextInstants, await answered(id)]).toEqual([[], []]);
    const enabled = await own.operations.updateWorkflow({ workflowId: id, disabled: false });
    expect(enabled.workflow?.nextInstants).toHaveLength(1);
  });
});

describe("a start that is refused", () => {
  test("is entered with the reason, leaves nothing else, and the schedule goes on", async () => {
    const id = await own.create([time("0 * * * *", Overlap.CANCEL_PREVIOUS)]);
    await fireAt(START_MS + HOUR_MS);
    await storeCommand(id, "echo {{ .Parameters.name }}");
    await fireAt(START_MS + 2 * HOUR_MS);
    const [, refused] = await own.ledger(id);
    expect(refused).toMatchObject({ verdict: Verdict.REFUSED, workflowExecutionId: "" });
    expect(refused?.reason).toContain("name");
    const [running, ...others] = await own.executions(id);
    expect(others).toEqual([]);
    expect(running?.status?.phase).not.toBe(Phase.STOPPED);
    // It can still be changed in other respects, and a default lets it start.
    await own.operations.updateWorkflow({ workflowId: id, name: "Renamed", action: await actionOf(id) });
    await own.operations.updateWorkflow({
      workflowId: id,
      parameters: [{ key: "name", defaultValue: "harbour" }],
    });
    await fireAt(START_MS + 3 * HOUR_MS);
    expect(verdicts(await own.ledger(id)).at(-1)).toBe(Verdict.STARTED);
  });

  test("by an unforeseen failure is reported, and holds no other trigger up", async () => {
    const broken = await own.create([time("0 9 * * *")]);
    const well = await own.create([time("0 9 * * *")]);
    await testStore.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("workflow_schedule")
        .set({ cron_expression: "no expression", next_at: START_MS })
        .where("workflow_id", "=", broken)
        .execute(),
    );
    await expect(fireAt(NINE)).rejects.toThrow(AggregateError);
    expect(await own.ledger(broken)).toEqual([]);
    expect(verdicts(await own.ledger(well))).toEqual([Verdict.STARTED]);
  });
});

test("more triggers than one batch are done in one run, each of its own organization", async () => {
  const other = triggeredWorkflows(testStore, await testStore.createOrganization("lighthouse"));
  const made = [await other.create(Array(10).fill(time("0 9 * * *")))];
  for (let workflow = 0; workflow < 10; workflow += 1) {
    made.push(await own.create(Array(10).fill(time("0 9 * * *"))));
  }
  await fireAt(NINE);
  const rows = await builderOf(testStore.store.reader)
    .selectFrom("workflow_execution")
    .select(["workflow_id", "organization_id"])
    .execute();
  expect(rows).toHaveLength(110);
  expect(new Set(rows.map(({ workflow_id }) => workflow_id))).toEqual(new Set(made));
  expect(rows.filter(({ organization_id }) => organization_id !== caller.organizationId)).toHaveLength(10);
});
