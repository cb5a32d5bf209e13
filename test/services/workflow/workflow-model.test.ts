import { afterAll, beforeAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as Phase,
} from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../../../src/domain/error.ts";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { countedPhaseOf } from "../../../src/domain/workflow/execution/workflow-action.ts";
import {
  ACTION_TRANSITIONS,
  EXECUTION_TRANSITIONS,
  isFinalAction,
  isFinalExecution,
  type Transition,
} from "../../../src/domain/workflow/execution/workflow-transitions.ts";
import { stopTimedOutActions } from "../../../src/jobs/action-timeout.ts";
import { continueStops } from "../../../src/jobs/stops.ts";
import { revokeExecutionsOfExecutor } from "../../../src/services/workflow/execution/execution-cancel.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { OPERATOR } from "../../../src/store/store.ts";
import { findPendingStops } from "../../../src/store/workflow/pending-stop.ts";
import { replay } from "../../harness/seed.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  LINES,
  Outcome,
  overRepositories,
  runnerOf,
  State,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

const ACTIONS = 4;
const MAX_PARALLEL = 2;

let testStore: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
let workflowId: string;
beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  workflows = workflowsOf(testStore, caller);
  runner = await runnerOf(testStore, caller);
  const limits = { maxParallel: MAX_PARALLEL, maxTotal: ACTIONS, perExecution: { maxTime: "60s" } };
  workflowId = await workflows.make({
    triggers: [overRepositories(ACTIONS)],
    action: { limits, steps: [task(), LINES] },
    report: action(1, 1, LINES),
  });
});
afterAll(() => testStore.close());

/** What a sequence has brought about so far. */
interface World {
  readonly executionIds: string[];
  /** Also what was finished or lost long ago: its holder may not have noticed. */
  readonly held: Work[];
}

interface Command {
  readonly name: string;
  run(world: World): Promise<unknown>;
}

/** One of the newest, so that it is seldom settled already. */
const pick = <T>(values: readonly T[], which: number): T | undefined =>
  values.at(-1 - (which % Math.max(1, values.length)));
const which = fc.nat({ max: 5 });

/** A kind of command, and how often it comes. */
function command<T>(
  weight: number,
  name: string,
  details: fc.Arbitrary<T>,
  run: (details: T, world: World) => Promise<unknown>,
): { weight: number; arbitrary: fc.Arbitrary<Command> } {
  const arbitrary = details.map((each) => ({
    name: `${name} ${JSON.stringify(each)}`,
    run: (world: World) => run(each, world),
  }));
  return { weight, arbitrary };
}

const nothing = fc.constant(null);
const commands: fc.Arbitrary<Command> = fc.oneof(
  command(3, "start", nothing, async (_, { executionIds }) => {
    executionIds.push((await workflows.start(workflowId)).id);
  }),
  command(8, "lease", fc.integer({ min: 1, max: 3 }), async (most, { held }) => {
    held.push(...(await runner.lease(most)));
  }),
  command(
    6,
    "report",
    fc.record({
      index: which,
      stepIndex: fc.nat({ max: 1 }),
      state: fc.constantFrom(State.RUNNING, State.DONE, State.FAILED),
      print: fc.constantFrom("7", "x"),
    }),
    async ({ index, stepIndex, state, print }, { held }) => {
      const work = pick(held, index);
      const outputs = { lines: new TextEncoder().encode(print) };
      if (work) await runner.report(work, { stepIndex, state, outputs });
    },
  ),
  command(
    8,
    "do",
    fc.record({ index: which, how: fc.constantFrom("complete" as const, "fail" as const) }),
    async ({ index, how }, { held }) => {
      const work = pick(held, index);
      if (work) await runner[how](work);
    },
  ),
  command(
    4,
    "finish",
    fc.record({
      index: which,
      outcome: fc.constantFrom(Outcome.DONE, Outcome.FAILED, Outcome.STOPPED, Outcome.RELEASED),
    }),
    async ({ index, outcome }, { held }) => {
      const work = pick(held, index);
      if (work) await runner.finish(work, outcome);
    },
  ),
  command(1, "cancel", which, async (index, { executionIds }) => {
    const workflowExecutionId = pick(executionIds, index);
    if (workflowExecutionId) await workflows.cancelWorkflowExecution({ workflowExecutionId });
  }),
  command(2, "cancel an action", fc.tuple(which, which), async ([index, place], { executionIds }) => {
    const executionId = pick(executionIds, index);
    if (!executionId) return;
    const workflowExecutionActionId = pick(await workflows.actions(executionId), place)?.id ?? "";
    await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId });
  }),
  command(3, "retry", which, async (index, { executionIds }) => {
    const workflowExecutionId = pick(executionIds, index);
    if (!workflowExecutionId) return;
    const { workflowExecution } = await workflows.retryFailedActions({ workflowExecutionId });
    executionIds.push(workflowExecution?.id ?? "");
  }),
  command(1, "fall silent", nothing, () => runner.fallSilent()),
  command(1, "stop overtime", nothing, () => {
    testStore.clock.now += 10_000;
    return stopTimedOutActions(testStore.store, testStore.clock.now);
  }),
  command(1, "block", nothing, () =>
    testStore.store.write(OPERATOR, "test", (tx) =>
      revokeExecutionsOfExecutor(tx, caller, caller.subject.id),
    ),
  ),
  command(1, "go on with stops", nothing, () => continueStops(testStore.store)),
);

test("executions never leave their table and their counts always add up, whatever is asked in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 20, maxLength: 60, size: "max" }), async (sequence) => {
      const world: World = { executionIds: [], held: [] };
      const before = new Map<string, Phase | ActionPhase>();
      for (const { name, run } of sequence) {
        try {
          await run(world);
        } catch (error) {
          // What is not possible now is refused, and nothing of it happens.
          if (!(error instanceof DomainError)) throw new Error(`${name} failed`, { cause: error });
        }
        await holdsTogether(world, before);
      }
      await comesToAnEnd(world, before);
    }),
    { numRuns: 30, endOnFailure: true, ...replay },
  );
}, 600_000);

/** Which phases can follow on which, however many moves lie between two looks. */
function reachable(table: readonly Transition<number, string>[]): ReadonlySet<string> {
  const pairs = new Set(table.map(([from, , to]) => `${from} ${to}`));
  for (let size = 0; size < pairs.size; ) {
    size = pairs.size;
    for (const pair of pairs) {
      const [start, between] = pair.split(" ");
      for (const [from, , to] of table) if (String(from) === between) pairs.add(`${start} ${to}`);
    }
  }
  return pairs;
}

const EXECUTION_PAIRS = reachable(EXECUTION_TRANSITIONS);
const ACTION_PAIRS = reachable(ACTION_TRANSITIONS);

async function holdsTogether({ executionIds }: World, before: Map<string, number>): Promise<void> {
  const { reader } = testStore.store;
  const queue = await builderOf(reader).selectFrom("work").selectAll().execute();
  const stopsGoOn = (await findPendingStops(reader, 1)).length > 0;
  for (const id of executionIds) {
    const execution = await workflows.execution(id);
    const { status, spec, metadata } = execution;
    const phase = status?.phase ?? 0;
    legal(EXECUTION_PAIRS, before, id, phase);
    const actions = await workflows.actions(id);
    const counts = { pending: 0, running: 0, failed: 0, done: 0, stopped: 0 };
    for (const each of actions) counts[countedPhaseOf(each)] += 1;
    expect(counts).toEqual({
      pending: status?.pendingActionCount,
      running: status?.runningActionCount,
      failed: status?.failedActionCount,
      done: status?.doneActionCount,
      stopped: status?.stoppedActionCount,
    });
    const inQueue = queue.filter(({ group_id }) => group_id === id);
    for (const each of actions) {
      const actionPhase = each.status?.phase ?? 0;
      legal(ACTION_PAIRS, before, each.id, actionPhase);
      const work = inQueue.find(({ subject_id }) => subject_id === each.id);
      // A runner has what runs; nobody has what ended, save one that has not learnt of a block yet.
      if (counts.running > 0 && countedPhaseOf(each) === "running")
        expect(work?.leased_by).toBe(runner.runnerId);
      if (actionPhase === ActionPhase.PENDING) expect(work?.leased_by ?? null).toBeNull();
      if (isFinalAction(actionPhase)) expect([undefined, 1]).toContain(work?.stop);
    }
    const given = actions.filter(
      ({ id: actionId, status: { phase: each } = { phase: 0 } }) =>
        !isFinalAction(each) && inQueue.some(({ subject_id }) => subject_id === actionId),
    );
    expect(given.length).toBeLessThanOrEqual(MAX_PARALLEL);
    if (!isFinalExecution(phase) && spec?.desiredPhase === Phase.COMPLETED) {
      const waiting = counts.pending + counts.running;
      // Nothing waits while there is room for it.
      expect(given.length).toBe(Math.min(MAX_PARALLEL, waiting));
      expect(waiting).toBeGreaterThan(0);
    }
    expect(metadata?.finishedAt !== undefined).toBe(isFinalExecution(phase));
    if (isFinalExecution(phase)) expect(counts.pending + counts.running).toBe(0);
    // Of much that was cut off, actions wait for the next turn of the stop.
    if (phase === Phase.STOPPING && stopsGoOn) expect(counts.pending + counts.running).toBeGreaterThan(0);
    else if (phase === Phase.STOPPING) expect([counts.pending, counts.running > 0]).toEqual([0, true]);
    expect(status?.session).toBe(spec?.session);
  }
}

function legal(pairs: ReadonlySet<string>, before: Map<string, number>, id: string, phase: number): void {
  const from = before.get(id) ?? phase;
  if (from !== phase) expect(pairs).toContain(`${from} ${phase}`);
  before.set(id, phase);
}

/** However it began, somebody who keeps working gets every execution to its end. */
async function comesToAnEnd(world: World, before: Map<string, number>): Promise<void> {
  await continueStops(testStore.store);
  await runner.fallSilent();
  for (let works = await runner.lease(9); works.length > 0; works = await runner.lease(9)) {
    for (const work of works) await runner.complete(work);
    await holdsTogether(world, before);
  }
  for (const id of world.executionIds) {
    expect(isFinalExecution((await workflows.execution(id)).status?.phase ?? 0)).toBe(true);
  }
  const queue = await builderOf(testStore.store.reader)
    .selectFrom("work")
    .select("subject_id")
    .where("kind", "=", 2)
    .execute();
  expect(queue).toEqual([]);
}
