import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  type ReportWorksResponse,
  WorkService as WorkContract,
  type WorkReportSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  WorkflowExecutionPhase as ExecutionPhase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { repeatableKey } from "../../../src/services/call/idempotency.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { replay } from "../../harness/seed.ts";
import { contextOf, openTestStore, type TestStore } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  LEASE_MS,
  Outcome,
  overRepositories,
  runnerOf,
  State,
  task,
  type Workflows,
  workflowsOf,
} from "../workflow/running-workflow.ts";

type Report = MessageInitShape<typeof WorkReportSchema>;

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

const named = ({ leaseId, fence }: Pick<Work, "leaseId" | "fence">) => ({ leaseId, fence });
const running = { stepIndex: 0, state: State.RUNNING };
const done = { stepIndex: 0, state: State.DONE };

/** Leases so many actions of one execution. */
async function leased(count: number): Promise<{ executionId: string; works: Work[] }> {
  const id = await workflows.make({
    triggers: [overRepositories(count)],
    action: action(count, count, task(), task()),
  });
  const { id: executionId } = await workflows.start(id);
  return { executionId, works: await runner.lease(count) };
}

describe("ReportWorks", () => {
  test("reports on some leases, ends others, and leases what that makes room for", async () => {
    const id = await workflows.make({ triggers: [overRepositories(3)], action: action(2, 3) });
    const execution = await workflows.start(id);
    const [first, second] = (await runner.lease(3)) as [Work, Work];
    const { results, works } = await runner.operations.reportWorks({
      reports: [
        {
          progress: { ...named(first), steps: [running, done] },
          finish: { ...named(first), outcome: Outcome.DONE },
        },
        { progress: { ...named(second), steps: [running] } },
      ],
      lease: { maxLeases: 2, wait: { seconds: 60n } },
    });
    expect(results.map(({ result }) => result.case)).toEqual(["finish", "progress"]);
    expect(works).toHaveLength(1);
    expect(await workflows.execution(execution.id)).toMatchObject({
      status: { doneActionCount: 1, runningActionCount: 2, pendingActionCount: 0 },
    });
  });

  test("fails a lost lease, a refused move and an end that comes too early each by itself", async () => {
    const { works } = await leased(5);
    const [good, lost, refused, early, last] = works as [Work, Work, Work, Work, Work];
    const answer = await runner.operations.reportWorks({
      reports: [
        { progress: { ...named(lost), fence: lost.fence + 1n, steps: [running] } },
        { progress: { ...named(good), steps: [running] } },
        { progress: { ...named(refused), steps: [running, { stepIndex: 7, state: State.RUNNING }] } },
        {
          progress: { ...named(early), steps: [running, done] },
          finish: { ...named(early), outcome: Outcome.DONE },
        },
        { progress: { ...named(last), steps: [running] } },
      ],
    });
    const { LEASE_LOST, VALUE_UNUSABLE, PHASE_UNSUITABLE } = ErrorReason;
    expect(reasonsOf(answer)).toEqual([LEASE_LOST, "ok", VALUE_UNUSABLE, PHASE_UNSUITABLE, "ok"]);
    // What failed has changed nothing: neither the first step of the third, nor those of the fourth.
    const phases = new Map<string, StepPhase | undefined>();
    for (const id of await executionIds()) {
      for (const each of await workflows.actions(id))
        phases.set(each.id, each.status?.stepStatuses[0]?.phase);
    }
    const phaseOf = (work: Work) => phases.get(work.work.case === "action" ? work.work.value.actionId : "");
    expect([good, lost, refused, early, last].map(phaseOf)).toEqual([
      StepPhase.RUNNING,
      StepPhase.PENDING,
      StepPhase.PENDING,
      StepPhase.PENDING,
      StepPhase.RUNNING,
    ]);
  });

  test("applies reports on one lease in their order", async () => {
    const { works, executionId } = await leased(1);
    const [work] = works as [Work];
    const second = [
      { stepIndex: 1, state: State.RUNNING },
      { stepIndex: 1, state: State.DONE },
    ];
    const { results } = await runner.operations.reportWorks({
      reports: [
        { progress: { ...named(work), steps: [running] } },
        { progress: { ...named(work), steps: [done, ...second] } },
        { finish: { ...named(work), outcome: Outcome.DONE } },
      ],
    });
    expect(results.map(({ result }) => result.case)).toEqual(["progress", "progress", "finish"]);
    expect(await workflows.execution(executionId)).toMatchObject({
      status: { phase: ExecutionPhase.COMPLETED },
    });
  });

  test("says to stop, and refuses once the account behind the work is blocked", async () => {
    const { works, executionId } = await leased(2);
    const [first, second] = works as [Work, Work];
    const report = () =>
      runner.operations.reportWorks({
        reports: [first, second].map((work) => ({ progress: { ...named(work), steps: [running] } })),
      });
    const [action1] = await workflows.actions(executionId);
    await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId: action1?.id ?? "" });
    const stops = (await report()).results.map(
      ({ result }) => result.case === "progress" && result.value.stop,
    );
    expect(stops.toSorted()).toEqual([false, true]);
    await made.store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db).updateTable("account").set({ blocked_at: now }).execute(),
    );
    expect(reasonsOf(await report())).toEqual([ErrorReason.ACCOUNT_BLOCKED, ErrorReason.ACCOUNT_BLOCKED]);
  });

  test("answers a repetition under an idempotency key without leasing again", async () => {
    const { works } = await leased(1);
    await workflows.start(await workflows.make({ triggers: [overRepositories(3)], action: action(3, 3) }));
    const [work] = works as [Work];
    const { reportWorks } = WorkContract.method;
    const call = () => {
      const ctx = contextOf(reportWorks, runner.caller);
      ctx.values.set(repeatableKey, { key: "once", hashes: [new Uint8Array(32)] });
      const reports = [{ progress: { ...named(work), steps: [running] } }];
      return runner.service.reportWorks(create(reportWorks.input, { reports, lease: { maxLeases: 2 } }), ctx);
    };
    const first = await call();
    expect(first.works).toHaveLength(2);
    const again = await call();
    expect(again.works.map(({ leaseId }) => leaseId)).toEqual(first.works.map(({ leaseId }) => leaseId));
    // The third is left for somebody else.
    expect(await runner.lease(5)).toHaveLength(1);
  });

  test("leases nothing while the server drains, and still takes reports", async () => {
    const { works } = await leased(1);
    await workflows.start(await workflows.make());
    const [work] = works as [Work];
    runner.draining.abort();
    const answer = await runner.operations.reportWorks({
      reports: [{ progress: { ...named(work), steps: [running] } }],
      lease: { maxLeases: 2 },
    });
    expect(answer).toMatchObject({ results: [{ result: { case: "progress" } }], works: [] });
  });
});

describe("how long ago a step moved", () => {
  const times = async (executionId: string) => {
    const [only] = await workflows.actions(executionId);
    const { startedAt, finishedAt } = only?.status?.stepStatuses[0] ?? {};
    return [startedAt, finishedAt].map((at) => at && Number(at.seconds) * 1000 + at.nanos / 1e6);
  };
  const move = (work: Work, ...steps: { state: State; agoMs: number }[]) =>
    runner.operations.reportProgress({
      ...named(work),
      steps: steps.map(({ state, agoMs }) => ({ stepIndex: 0, state, ago: durationFromMs(agoMs) })),
    });

  test("is when it started and finished", async () => {
    const { works, executionId } = await leased(1);
    const began = made.clock.now;
    made.clock.now = began + 100;
    await move(works[0] as Work, { state: State.RUNNING, agoMs: 70 }, { state: State.DONE, agoMs: 20 });
    expect(await times(executionId)).toEqual([began + 30, began + 80]);
  });

  test("is never before the lease was renewed, nor before an earlier move", async () => {
    const { works, executionId } = await leased(1);
    const [work] = works as [Work];
    const began = made.clock.now;
    made.clock.now = began + 100;
    await move(work, { state: State.RUNNING, agoMs: 29_000 });
    made.clock.now = began + 150;
    await move(work, { state: State.DONE, agoMs: 51 });
    expect(await times(executionId)).toEqual([began, began + 100]);
  });
});

describe("RenewLeases", () => {
  test("renews each lease by itself", async () => {
    const { works } = await leased(3);
    const [first, second, third] = works as [Work, Work, Work];
    made.clock.now += LEASE_MS - 1;
    const { renewals } = await runner.operations.renewLeases({
      leases: [named(first), { ...named(second), fence: 9n }, named(third)],
    });
    expect(renewals.map(({ result }) => result.case)).toEqual(["renewed", "error", "renewed"]);
    made.clock.now += LEASE_MS - 1;
    await runner.renew(first);
    await runner.renew(third);
    await expect(runner.renew(second)).rejects.toMatchObject({ reason: ErrorReason.LEASE_LOST });
  });
});

const executionIds = async () =>
  (await workflows.listWorkflowExecutions({})).workflowExecutions.map(({ id }) => id);

describe("batches against calls for one lease", () => {
  type Step = { readonly work: number; readonly kind: "begin" | "end" | "fail" | "finish" | "stale" };
  const step = fc.record<Step>({
    work: fc.nat({ max: 3 }),
    kind: fc.constantFrom("begin", "end", "fail", "finish", "stale"),
  });
  const programs = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 6 });

  const reportOf = (work: Work, kind: Step["kind"]): Report => {
    const name = kind === "stale" ? { ...named(work), fence: work.fence + 1n } : named(work);
    switch (kind) {
      case "finish":
        return { finish: { ...name, outcome: Outcome.DONE } };
      case "fail":
        return {
          progress: { ...name, steps: [{ stepIndex: 0, state: State.FAILED }] },
          finish: { ...name, outcome: Outcome.FAILED },
        };
      case "end":
        return {
          progress: {
            ...name,
            steps: [done, { stepIndex: 1, state: State.RUNNING }, { stepIndex: 1, state: State.DONE }],
          },
        };
      default:
        return { progress: { ...name, steps: [running] } };
    }
  };

  /** Runs a program on an organization of its own, in batches or call by call; returns what came of it. */
  async function run(program: readonly Step[][], batched: boolean) {
    const store = openTestStore();
    try {
      const owner = await store.createOrganization("harbour");
      const own = workflowsOf(store, owner);
      const atWork = await runnerOf(store, owner);
      const id = await own.make({ triggers: [overRepositories(4)], action: action(4, 4, task(), task()) });
      const { id: executionId } = await own.start(id);
      const works = await atWork.lease(4);
      const results: unknown[] = [];
      for (const batch of program) {
        store.clock.now += 10;
        const reports = batch.map(({ work, kind }) => reportOf(works[work] as Work, kind));
        if (batched) {
          results.push(...reasonsOf(await atWork.operations.reportWorks({ reports })));
          continue;
        }
        for (const report of reports) results.push(await singly(atWork, report));
      }
      const execution = await own.execution(executionId);
      const actions = await own.actions(executionId);
      const { audit } = await store.history(owner);
      const facts = (id: string) =>
        works.findIndex(({ work }) => work.case === "action" && work.value.actionId === id);
      return {
        results,
        counts: execution.status,
        actions: actions
          .map(({ id: actionId, status }) => ({
            at: facts(actionId),
            phase: status?.phase,
            failures: status?.failures.map(({ reason }) => reason),
            steps: status?.stepStatuses.map(({ phase, startedAt, finishedAt }) => [
              phase,
              startedAt,
              finishedAt,
            ]),
          }))
          .toSorted((one, other) => one.at - other.at),
        rows: audit.length,
      };
    } finally {
      await store.close();
    }
  }

  test("make the same rows and answers", async () => {
    await fc.assert(
      fc.asyncProperty(programs, async (program) => {
        const [batched, single] = [await run(program, true), await run(program, false)];
        expect(forComparison(batched)).toEqual(forComparison(single));
      }),
      { ...replay, numRuns: 25 },
    );
  });
});

/** Ids and times differ from one organization to the other only by the moment of its making. */
function forComparison(value: { counts: unknown } & Record<string, unknown>): unknown {
  const { counts, ...others } = value;
  const { session: _session, ...rest } = JSON.parse(stringify(counts));
  return { ...JSON.parse(stringify(others)), counts: rest };
}

function stringify(value: unknown): string {
  return JSON.stringify(value, (_key, each) => (typeof each === "bigint" ? String(each) : each));
}

/** The report in calls for one lease. One with progress and end is a batch of its own: only that is all or nothing. */
async function singly({ operations }: AtWork, report: Report): Promise<unknown> {
  try {
    if (report.progress && report.finish)
      return reasonsOf(await operations.reportWorks({ reports: [report] }))[0];
    if (report.progress) await operations.reportProgress(report.progress);
    if (report.finish) await operations.finishWork(report.finish);
    return "ok";
  } catch (error) {
    return (error as { reason: ErrorReason }).reason;
  }
}

function reasonsOf({ results }: ReportWorksResponse): unknown[] {
  return results.map(({ result }) => (result.case === "error" ? result.value.detail?.reason : "ok"));
}
