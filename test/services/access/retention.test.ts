import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import {
  PreviewOrganizationPoliciesResponse_Outcome as Effect,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import { StreamActionLogsRequestSchema, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import type { Keep, RetainedKind, Retention } from "../../../src/domain/policy/retention.ts";
import { applyRetention, previewRetentionAsOperator } from "../../../src/jobs/retention/retention.ts";
import { previewPolicies } from "../../../src/services/access/policy-preview.ts";
import { countRemovable } from "../../../src/services/access/retention/removable-amounts.ts";
import { previewRetention } from "../../../src/services/access/retention/retention-preview.ts";
import { streamActionLogs } from "../../../src/services/workflow/action/action-logs.ts";
import { hideExecutions } from "../../../src/store/access/retention/removal.ts";
import { findSetPolicies, updatePolicies } from "../../../src/store/policy/organization-policies.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import type { Schema } from "../../../src/store/schema.ts";
import { type Store, SYSTEM, within } from "../../../src/store/store.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { withRawData } from "../../harness/raw-data.ts";
import { countedBytes, storageProblems } from "../../harness/stored-bytes.ts";
import { contextOf, DAY_MS, openTestStore, START_MS, type TestStore } from "../../harness/test-store.ts";
import { addAgent, type Runs, runsOn } from "../agent/agents.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { runnerOf, type Workflows, workflowsOf } from "../workflow/running-workflow.ts";
import { insertRun } from "../workflow/workflow-run.ts";

const FOREVER: Keep = { days: 0, count: 0 };
const HOUR_MS = 3_600_000;
/** What was reported of an environment, without its files. */
const NO_CHANGES = {
  creator_id: "",
  creator_principal: 0,
  refreshed_at: 0,
  version: 1,
  body: "{}",
  diffs: "[]",
};
const NOT_FOUND = { reason: ErrorReason.NOT_FOUND };

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  workflows = workflowsOf(made, caller);
});
afterEach(() => made.close());

const retention = (keep: Partial<Retention>): Retention => ({
  executions: FOREVER,
  agentExecutions: FOREVER,
  triggerEntries: FOREVER,
  events: FOREVER,
  ...keep,
});

/** Removes what is kept no longer; what a preview said before, without its bytes. */
async function apply(keep: Partial<Retention>): Promise<[kind: string, rows: number][]> {
  const preview = await previewRetentionAsOperator(made.store, retention(keep), made.clock.now);
  const removed: [string, number][] = [];
  await applyRetention(made.store, retention(keep), made.clock.now, ({ kind, rows }) =>
    removed.push([kind, rows]),
  );
  const previewed = preview.map(({ kind, rows }): [string, number] => [kind, rows]);
  expect(previewed.sort()).toEqual(removed.sort());
  return removed;
}

async function count(table: keyof Schema): Promise<number> {
  return (await builderOf(made.store.reader).selectFrom(table).selectAll().execute()).length;
}

const change = (run: Parameters<typeof made.store.write<void>>[2]) => made.store.write(SYSTEM, "test", run);

/** Executions of a workflow that ended at these times. */
async function ended(
  workflowId: string,
  times: readonly number[],
  scope: Caller = caller,
): Promise<string[]> {
  const ids: string[] = [];
  for (const finishedAt of times)
    ids.push(
      await insertRun(made, scope, workflowId, { phase: Phase.COMPLETED, startedAt: START_MS, finishedAt }),
    );
  return ids;
}

const idsOf = async () =>
  (await workflows.listWorkflowExecutions({ pagination: { pageSize: 100 } })).workflowExecutions
    .map(({ id }) => id)
    .sort();

describe("executions of workflows", () => {
  test("go once they are older than they are kept, and nobody else's do", async () => {
    const stranger = await made.createOrganization("island");
    const foreign = workflowsOf(made, stranger);
    const id = await workflows.make();
    const now = START_MS + 40 * DAY_MS;
    const [old = "", ...kept] = await ended(id, [
      now - 30 * DAY_MS - 1,
      now - 30 * DAY_MS,
      now - 30 * DAY_MS + 1,
    ]);
    const theirs = await ended(await foreign.make(), [START_MS], stranger);
    made.clock.now = now;
    // The policy of an organization goes before the settings.
    await change(async ({ db }) => {
      await builderOf(db)
        .insertInto("organization_policies")
        .values({
          organization_id: stranger.organizationId,
          body: JSON.stringify({ retention: { executions: { days: 50 } } }),
          origins: "{}",
        })
        .execute();
    });
    expect(await apply({})).toEqual([]);
    expect(await apply({ executions: { days: 30, count: 0 } })).toEqual([["executions", 1]]);
    expect(await idsOf()).toEqual(kept);
    await expect(workflows.execution(old)).rejects.toMatchObject(NOT_FOUND);
    expect((await foreign.execution(theirs[0] ?? "")).id).toBe(theirs[0]);
    expect(await apply({ executions: { days: 30, count: 0 } })).toEqual([]);
    const { audit, events } = await made.history(caller);
    expect(audit.at(-1)).toMatchObject({
      actor_id: SYSTEM.id,
      operation: "job/retention",
      subject_id: old,
      reason: "kept for 30 days",
    });
    expect(events.at(-1)).toMatchObject({ kind: "deleted", resource_id: old });
  });

  test("past a count go, of each workflow, but not those of the last hour", async () => {
    const [one, two] = [await workflows.make(), await workflows.make()];
    const first = await ended(one, [START_MS, START_MS, START_MS, START_MS]);
    const second = await ended(two, [START_MS]);
    made.clock.now = START_MS + HOUR_MS;
    expect(await apply({ executions: { days: 0, count: 2 } })).toEqual([]);
    made.clock.now += 1;
    expect(await apply({ executions: { days: 0, count: 4 } })).toEqual([]);
    expect(await apply({ executions: { days: 0, count: 2 } })).toEqual([["executions", 2]]);
    expect(await idsOf()).toEqual([...first.slice(2), ...second].sort());
  });

  test("take their actions, logs and outputs with them, in portions, and a page token goes on behind them", async () => {
    const runner = await runnerOf(made, caller);
    const id = await workflows.make();
    const gone = await workflows.start(id);
    const [work] = await runner.lease();
    if (!work) throw new Error("there is no work");
    const { leaseId, fence } = work;
    for (let piece = 0; piece < 250; piece++)
      await runner.operations.reportProgress({
        leaseId,
        fence,
        logs: [{ offset: BigInt(piece * 100), data: new Uint8Array(100) }],
      });
    await runner.complete(work, "7");
    made.clock.now += DAY_MS;
    const kept = await ended(id, [made.clock.now, made.clock.now]);
    const first = await workflows.listWorkflowExecutions({ pagination: { pageSize: 1 } });
    made.clock.now += 30 * DAY_MS;
    const pieces = await count("step_log");
    expect(pieces).toBeGreaterThan(0);
    const [action] = await workflows.actions(gone.id);
    await change(async ({ db }) => {
      const of = {
        environment_id: "gone",
        organization_id: caller.organizationId,
        action_id: action?.id ?? "",
      };
      await builderOf(db)
        .insertInto("environment_changes")
        .values({ ...of, ...NO_CHANGES })
        .execute();
      const { action_id: _, ...file } = of;
      await builderOf(db)
        .insertInto("environment_file_diff")
        .values([1, 2].map((place) => ({ ...file, base: 1, place, body: "{}" })))
        .execute();
    });
    const counts = [pieces];
    const leave = afterWrites(made.store, async () => void counts.push(await count("step_log")));
    expect(await apply({ executions: { days: 30, count: 0 } })).toEqual([["executions", 1]]);
    leave();
    for (const [at, before] of counts.entries())
      expect(before - (counts[at + 1] ?? 0)).toBeLessThanOrEqual(100);
    for (const table of [
      "workflow_action",
      "step_log",
      "environment_changes",
      "environment_file_diff",
    ] as const)
      expect([table, await count(table)]).toEqual([table, 0]);
    expect(await count("workflow_plan")).toBe(0);
    await expect(
      workflows.getWorkflowExecutionAction({ workflowExecutionActionId: action?.id ?? "" }),
    ).rejects.toMatchObject(NOT_FOUND);
    const { nextToken: token } = first.pagination ?? {};
    const next = await workflows.listWorkflowExecutions({ pagination: { pageSize: 5, token: token ?? "" } });
    const seen = [...first.workflowExecutions, ...next.workflowExecutions].map(({ id: each }) => each);
    expect(seen.sort()).toEqual(kept.sort());
  });

  test("go without a write that finds nothing", async () => {
    await ended(await workflows.make(), [START_MS, START_MS]);
    made.clock.now += 31 * DAY_MS;
    const operations: string[] = [];
    const write: Store["write"] = (actor, operation, ...rest) => {
      operations.push(operation);
      return made.store.write(actor, operation, ...rest);
    };
    const keep = retention({ executions: { days: 30, count: 0 } });
    const run = () =>
      applyRetention(Object.create(made.store, { write: { value: write } }), keep, made.clock.now);
    await run();
    expect(await count("workflow_execution")).toBe(0);
    // One takes both away, and one removes their rows: they have no parts and no approvals.
    expect(operations).toEqual(["job/retention", "job/retention"]);
    await run();
    expect(operations).toHaveLength(2);
  });

  test("stay while anything needs them", async () => {
    const id = await workflows.make();
    const [asked = "", followed = "", retried = "", again = "", free = ""] = await ended(
      id,
      Array(5).fill(START_MS),
    );
    const [open = ""] = await ended(id, [START_MS]);
    const approvalId = made.newId();
    await change(async ({ db }) => {
      const set = (run: string, values: object) =>
        builderOf(db).updateTable("workflow_execution").set(values).where("id", "=", run).execute();
      await set(again, { retried_execution_id: retried });
      await set(open, { retried_execution_id: again, finished_at: null, phase: Phase.RUNNING });
      await builderOf(db)
        .insertInto("approval")
        .values({
          id: approvalId,
          organization_id: caller.organizationId,
          phase: 1,
          agent_execution_id: null,
          tool_call_id: null,
          digest: "",
          workflow_execution_id: asked,
          action_id: null,
          step_index: null,
          environment_id: null,
          creator_id: "",
          creator_principal: 0,
          is_shared: 1,
          expires_at: 0,
          body: JSON.stringify({ id: approvalId }),
        })
        .execute();
      await builderOf(db)
        .insertInto("pull_request")
        .values({
          id: made.newId(),
          organization_id: caller.organizationId,
          workflow_id: id,
          execution_id: followed,
          action_id: null,
          environment_id: "",
          agent_execution_id: null,
          owner_id: null,
          owner_principal: null,
          host: "",
          repository: "",
          identity: "",
          number: 1,
          head_sha: "",
          state: 1,
          source_set_by: "[]",
          changed_at: 0,
          seen_at: null,
          next_poll_at: 1,
          failures: 0,
          memory: "{}",
          body: "{}",
        })
        .execute();
    });
    made.clock.now += 9 * DAY_MS;
    const keep = { executions: { days: 1, count: 0 } };
    expect(await apply(keep)).toEqual([["executions", 1]]);
    await expect(workflows.execution(free)).rejects.toMatchObject(NOT_FOUND);
    await change(async ({ db }) => {
      await builderOf(db).updateTable("approval").set({ phase: 2 }).execute();
      await builderOf(db).updateTable("pull_request").set({ next_poll_at: null }).execute();
      await builderOf(db)
        .updateTable("workflow_execution")
        .set({ finished_at: made.clock.now })
        .where("id", "=", open)
        .execute();
    });
    expect(await apply(keep)).toEqual([["executions", 2]]);
    // A retry of the last would report what the first has put out.
    expect(await idsOf()).toEqual([retried, again, open].sort());
    made.clock.now += 2 * DAY_MS;
    expect(await apply(keep)).toEqual([["executions", 3]]);
    expect(await idsOf()).toEqual([]);
  });

  test("that a killed run had taken away are gone for readers, and go with the next run", async () => {
    const id = await workflows.make();
    const [taken = "", kept = ""] = await ended(id, [START_MS, START_MS]);
    const { organizationId } = caller;
    await made.store.write(
      SYSTEM,
      "test",
      (tx) =>
        hideExecutions(
          tx,
          { organizationId },
          [{ id: taken, workflowId: id, startedAt: START_MS, finishedAt: START_MS, actions: 0 }],
          "test",
        ),
      within(caller),
    );
    expect(await idsOf()).toEqual([kept]);
    await expect(workflows.execution(taken)).rejects.toMatchObject(NOT_FOUND);
    await expect(workflows.retryFailedActions({ workflowExecutionId: taken })).rejects.toMatchObject(
      NOT_FOUND,
    );
    expect(await count("workflow_execution")).toBe(2);
    await applyRetention(made.store, retention({}), made.clock.now);
    expect(await count("workflow_execution")).toBe(1);
  });

  test("that were taken away show nothing of their actions, though the rows are there", async () => {
    const runner = await runnerOf(made, caller);
    const id = await workflows.make();
    const { id: executionId } = await workflows.start(id);
    const [work] = await runner.lease();
    if (!work) throw new Error("there is no work");
    const { leaseId, fence } = work;
    await runner.operations.reportProgress({
      leaseId,
      fence,
      logs: [{ offset: 0n, data: new Uint8Array(9) }],
    });
    await runner.complete(work, "7");
    const [{ id: actionId = "" } = {}] = await workflows.actions(executionId);
    await change(async ({ db }) => {
      const outputs = JSON.stringify({ actionId });
      await builderOf(db)
        .updateTable("workflow_action")
        .set({ outputs })
        .where("id", "=", actionId)
        .execute();
    });
    const shown = async () => {
      const listed = [[], [executionId]].map(async (workflowExecutionIds) => {
        const filter = { workflowExecutionIds };
        return (await workflows.listWorkflowExecutionOutputs({ filter })).outputs.length;
      });
      const draining = new AbortController().signal;
      const req = create(StreamActionLogsRequestSchema, { workflowExecutionActionId: actionId });
      const ctx = contextOf(WorkflowService.method.streamActionLogs, caller);
      const logs = streamActionLogs({ ...made.deps, draining }, req, ctx).next();
      return [
        ...(await Promise.all(listed)),
        (await workflows.actions(executionId)).length,
        await logs.then(
          ({ value }) => value?.data?.length,
          ({ reason }) => reason,
        ),
      ];
    };
    expect(await shown()).toEqual([1, 1, 1, 9]);
    const taken = { id: executionId, workflowId: id, startedAt: START_MS, finishedAt: START_MS, actions: 1 };
    await change((tx) => hideExecutions(tx, caller, [taken], "test"));
    expect(await shown()).toEqual([0, 0, 0, ErrorReason.NOT_FOUND]);
    expect([await count("workflow_action"), await count("step_log")]).toEqual([1, 1]);
  });

  test("are left to the next run by one that drains", async () => {
    await ended(await workflows.make(), Array(25).fill(START_MS));
    made.clock.now += 2 * DAY_MS;
    const keep = retention({ executions: { days: 1, count: 0 } });
    const draining = new AbortController();
    const leave = afterWrites(made.store, () => draining.abort());
    let removed = 0;
    const onRemoved = ({ rows }: { rows: number }) => {
      removed += rows;
    };
    await applyRetention(made.store, keep, made.clock.now, onRemoved, draining.signal);
    leave();
    // One write takes 20 away, whose rows are left.
    expect(removed).toBeLessThanOrEqual(20);
    expect((await idsOf()).length).toBe(25 - removed);
    expect(await count("workflow_execution")).toBe(25);
    await applyRetention(made.store, keep, made.clock.now);
    expect(await count("workflow_execution")).toBe(0);
  });
});

describe("agent executions", () => {
  let runner: RegisteredRunner;
  let runs: Runs;
  beforeEach(async () => {
    runner = await registeredRunner(made, caller);
    runs = runsOn(made, caller, runner);
    await addAgent(made, caller.organizationId, { isDefault: true, takesSettings: true });
  });

  async function say(given: Work, words: readonly string[]): Promise<void> {
    const { lastSequence } = given.work.value as { lastSequence: bigint };
    const blocks = words.map((content, index) => ({
      sequence: lastSequence + BigInt(index + 1),
      block: { case: "text" as const, value: { content } },
    }));
    await runs.work.reportAgent({ ...runs.named(given), blocks, state: State.WAITING });
  }

  /** Ends a run, and stops the environment that was made for it. */
  async function end({ id, given }: { readonly id: string; readonly given: Work }): Promise<string> {
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    await runs.finish(given, Outcome.STOPPED);
    const [stopping] = await runs.lease(WorkKind.ENVIRONMENT);
    if (!stopping) throw new Error("the environment is not stopped");
    await runner.reportProgress({
      ...runs.named(stopping),
      environment: { phase: EnvironmentPhase.STOPPED },
    });
    await runner.finishWork({ ...runs.named(stopping), outcome: Outcome.DONE });
    return id;
  }

  const get = (id: string) => runs.agents.getAgentExecution({ agentExecutionId: id });
  const keep = { agentExecutions: { days: 30, count: 0 } };

  test("whose conversation goes on stay, and go with its last run", async () => {
    const first = await runs.running({ name: "Fix it" });
    await say(first.given, ["one", "two"]);
    const content = { case: "text", value: { content: "more" } } as const;
    await runs.agents.sendToAgentExecution({
      agentExecutionId: first.id,
      input: { case: "userInput", value: { id: "of a\0client", inputs: [{ input: content }] } },
    });
    await end(first);
    made.clock.now += 31 * DAY_MS;
    const second = await runs.running({ resumeFrom: first.id });
    await say(second.given, ["three"]);
    expect(await apply(keep)).toEqual([]);
    await end(second);
    made.clock.now += 30 * DAY_MS;
    expect(await apply(keep)).toEqual([]);
    expect(await count("agent_output")).toBe(3);
    made.clock.now += 1;
    expect(await apply(keep)).toEqual([["agentExecutions", 2]]);
    for (const table of ["agent_execution", "agent_output", "agent_input"] as const)
      expect([table, await count(table)]).toEqual([table, 0]);
    for (const id of [first.id, second.id]) {
      await expect(get(id)).rejects.toMatchObject(NOT_FOUND);
      await expect(runs.agents.startAgent({ resumeFrom: id })).rejects.toMatchObject(NOT_FOUND);
    }
    // The environment that was made for the first goes as with DeleteAgentExecution.
    const [deleting] = await runs.lease(WorkKind.ENVIRONMENT);
    expect(deleting).toBeDefined();
    const { audit } = await made.history(caller);
    const removed = audit.filter(({ operation }) => operation === "job/retention");
    expect(removed.map(({ subject_id }) => subject_id)).toEqual(
      expect.arrayContaining([first.id, second.id]),
    );
    expect(JSON.stringify(removed)).not.toContain("Fix it");
    expect(await withRawData(made.dataDir, storageProblems)).toEqual([]);
    expect((await withRawData(made.dataDir, countedBytes)).size).toBeGreaterThan(0);
  });

  test("take what was reported of their environment with the last of them, in portions", async () => {
    const first = await runs.running();
    await end(first);
    await end(await runs.running({ resumeFrom: first.id }));
    const of = { environment_id: "gone", organization_id: caller.organizationId };
    await change(async ({ db }) => {
      await builderOf(db)
        .updateTable("agent_execution")
        .set({ environment_id: of.environment_id, made_environment: 0 })
        .execute();
      await builderOf(db)
        .insertInto("environment_changes")
        .values({ ...of, action_id: null, ...NO_CHANGES })
        .execute();
      const places = Array.from({ length: 250 }, (_, place) => ({ ...of, base: 1, place, body: "{}" }));
      await builderOf(db).insertInto("environment_file_diff").values(places).execute();
    });
    made.clock.now += 31 * DAY_MS;
    const counts = [250];
    const leave = afterWrites(made.store, async () => void counts.push(await count("environment_file_diff")));
    expect(await apply(keep)).toEqual([["agentExecutions", 2]]);
    leave();
    for (const [at, before] of counts.entries())
      expect(before - (counts[at + 1] ?? 0)).toBeLessThanOrEqual(100);
    for (const table of ["agent_execution", "environment_changes", "environment_file_diff"] as const)
      expect([table, await count(table)]).toEqual([table, 0]);
  });

  test("stay while their environment waits for an approval of a push", async () => {
    const run = await runs.running();
    await end(run);
    made.clock.now += 31 * DAY_MS;
    const { agentExecution } = await get(run.id);
    const [used] = agentExecution?.status?.usedEnvironments ?? [];
    await change(async ({ db }) => {
      await builderOf(db)
        .insertInto("approval")
        .values({
          id: made.newId(),
          organization_id: caller.organizationId,
          phase: 1,
          agent_execution_id: null,
          tool_call_id: null,
          digest: "",
          workflow_execution_id: null,
          action_id: null,
          step_index: null,
          environment_id: used?.environmentId ?? "",
          creator_id: "",
          creator_principal: 0,
          is_shared: 0,
          expires_at: 0,
          body: "{}",
        })
        .execute();
    });
    expect(await apply(keep)).toEqual([]);
    await change(async ({ db }) => {
      await builderOf(db).updateTable("approval").set({ phase: 2 }).execute();
    });
    expect(await apply(keep)).toEqual([["agentExecutions", 1]]);
  });

  test("past a count go, but not one whose environment runs, nor one that runs", async () => {
    const [first, second, third] = [await runs.running(), await runs.running(), await runs.running()];
    for (const { id, given } of [first, third]) {
      await runs.agents.stopAgentExecution({ agentExecutionId: id });
      await runs.finish(given, Outcome.STOPPED);
    }
    made.clock.now += HOUR_MS + 1;
    const newest = { agentExecutions: { days: 0, count: 1 } };
    // Its environment is on its way to be stopped.
    expect(await apply(newest)).toEqual([]);
    await change(async ({ db }) => {
      await builderOf(db).updateTable("environment").set({ phase: EnvironmentPhase.STOPPED }).execute();
    });
    expect(await apply({ agentExecutions: { days: 0, count: 2 } })).toEqual([]);
    expect(await apply(newest)).toEqual([["agentExecutions", 1]]);
    await expect(get(first.id)).rejects.toMatchObject(NOT_FOUND);
    for (const { id } of [second, third]) expect((await get(id)).agentExecution?.id).toBe(id);
  });
});

describe("what would go", () => {
  const OF_NOTHING = { count: 0, bytes: 0n, setByPolicy: false };
  const defaults = retention({ executions: { days: 30, count: 0 }, events: { days: 365, count: 7 } });
  const deps = () => ({ ...made.deps, retention: defaults });

  test("is shown with what is kept, by the policy or the settings, and is what then goes", async () => {
    const stranger = await made.createOrganization("island");
    await ended(await workflowsOf(made, stranger).make(), [START_MS], stranger);
    const id = await workflows.make();
    const now = START_MS + 40 * DAY_MS;
    await ended(id, [START_MS, START_MS + 1, now - 29 * DAY_MS]);
    made.clock.now = now;
    const { kinds, complete } = await previewRetention(deps(), caller);
    expect(complete).toBe(true);
    const { count: events } = kinds[3] ?? { count: 0 };
    expect(kinds).toEqual([
      {
        ...{ resourceType: "workflow_execution", kept: { days: 30, count: 0 }, setByPolicy: false },
        ...{ count: 2, bytes: expect.any(BigInt) },
      },
      { resourceType: "agent_execution", kept: FOREVER, ...OF_NOTHING },
      { resourceType: "trigger_event", kept: FOREVER, ...OF_NOTHING },
      {
        ...{ resourceType: "event", kept: { days: 365, count: 7 }, setByPolicy: false },
        ...{ count: events, bytes: expect.any(BigInt) },
      },
    ]);
    expect(kinds[0]?.bytes).toBeGreaterThan(0n);
    const previewed = await previewRetentionAsOperator(made.store, defaults, now);
    const own = previewed.filter(({ organizationId }) => organizationId === caller.organizationId);
    expect(own.map(({ rows, bytes }) => [rows, BigInt(bytes)])).toEqual(
      kinds.filter(({ count }) => count > 0).map(({ count, bytes }) => [count, bytes]),
    );
    await change(async (tx) => {
      const policies = create(OrganizationPoliciesSchema, { retention: { executions: { count: 1 } } });
      const before = await findSetPolicies(tx.db, caller);
      await updatePolicies(tx, caller, before, { policies, origins: {} });
    });
    expect((await previewRetention(deps(), caller)).kinds[0]).toMatchObject({
      ...{ kept: { days: 0, count: 1 }, setByPolicy: true },
      count: 2,
    });
  });

  test("after a change of the policy is what does not go before it, with its bytes and the first ids", async () => {
    const id = await workflows.make();
    const now = START_MS + 100 * DAY_MS;
    const old = await ended(id, [now - 31 * DAY_MS]);
    const between = await ended(id, [now - 20 * DAY_MS, now - 19 * DAY_MS]);
    await ended(id, [now - DAY_MS]);
    made.clock.now = now;
    const preview = async (executions: Keep) => {
      const { organizationId } = caller;
      const asked = create(UpdateOrganizationPoliciesRequestSchema, {
        organizationId,
        retention: { executions },
      });
      return (await previewPolicies(deps(), caller, asked)).effects;
    };
    const ofBetween = (await countRemovable(made.store, caller, "executions", {
      ...{ keep: { days: 10, count: 0 }, besides: { days: 30, count: 0 }, now, most: 10 },
    })) as { readonly bytes: number };
    expect(await preview({ days: 10, count: 0 })).toEqual([
      {
        ...{ fieldPath: "retention.executions", outcome: Effect.REMOVED, resourceType: "workflow_execution" },
        ...{ operation: "", allowed: "", count: 2, bytes: BigInt(ofBetween.bytes) },
        resources: between.map((each) => ({ id: each, name: "" })),
      },
    ]);
    expect(ofBetween.bytes).toBeGreaterThan(0);
    // More is kept, or as much.
    expect(await preview({ days: 31, count: 0 })).toEqual([]);
    expect(await preview({ days: 0, count: 0 })).toEqual([]);
    expect((await preview({ days: 0, count: 3 })).length).toBe(0);
    expect(await preview({ days: 0, count: 2 })).toMatchObject([{ count: 1 }]);
    expect((await idsOf()).length).toBe(old.length + 3);
  });

  test.each([
    [2, 2, false],
    [3, 3, true],
    [4, 3, true],
  ])("is looked at up to a number of rows: of three, %i", async (most, rows, isAll) => {
    const id = await workflows.make();
    await ended(id, [START_MS, START_MS + 1, START_MS + 2]);
    const now = START_MS + 40 * DAY_MS;
    const keep = { days: 30, count: 0 };
    const looked = (kind: RetainedKind) => countRemovable(made.store, caller, kind, { keep, now, most });
    expect(await looked("executions")).toMatchObject({ rows, isAll });
    const events = await looked("events");
    expect([events.rows, events.isAll]).toEqual([most, false]);
  });
});
