import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as ExecutionPhase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import type { UnusableWork } from "../../../src/services/runner/unusable-work.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { StoreUnavailable, SYSTEM } from "../../../src/store/store.ts";
import { testOnSqlite } from "../../harness/engine.ts";
import { refuse } from "../../harness/refusing-trigger.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { actionOf, workflowsOf } from "../workflow/running-workflow.ts";
import { LEASE_MS, registeredRunner } from "./work-service.ts";

let made: TestStore;
let caller: Caller;
let reported: UnusableWork[];
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  reported = [];
});
afterEach(() => made.close());

const HOUR_MS = 3_600_000;
const runnerOf = () => registeredRunner(made, caller, { onUnusableWork: (work) => void reported.push(work) });
const damage = (table: "project" | "workflow_action" | "workflow_execution", id: string, body = "{") =>
  made.store.write(SYSTEM, "test", ({ db }) =>
    builderOf(db).updateTable(table).set({ body }).where("id", "=", id).execute(),
  );

/** Starts an execution over projects; its id. */
async function overProjects(...names: string[]) {
  const workflows = workflowsOf(made, caller);
  const projectIds: string[] = [];
  for (const name of names) projectIds.push(await servicesOf(made, caller).project(name));
  const triggers = [{ manual: {}, context: { projects: { projectIds } } }];
  const { id } = await workflows.start(await workflows.make({ triggers }));
  return { workflows, executionId: id, projectIds };
}

describe("work whose assignment cannot be made", () => {
  test("fails with a reason, and other work is given out in the same call", async () => {
    const runner = await runnerOf();
    const broken = await overProjects("rotten", "sound");
    await damage("project", broken.projectIds[0] ?? "");
    const works = await runner.lease(10);
    const actions = await broken.workflows.actions(broken.executionId);
    expect(actions).toMatchObject([
      { status: { phase: ActionPhase.DONE, failures: [{ reason: "work_unusable" }] } },
      { status: { phase: ActionPhase.RUNNING, failures: [] } },
    ]);
    expect(works.map((work) => actionOf(work).actionId)).toEqual([actions[1]?.id]);
    expect(reported).toMatchObject([{ subjectId: actions[0]?.id, failed: true }]);
    // What was begun for the assignment is gone with it.
    const { environments } = await servicesOf(made, caller).environments.listEnvironments({});
    expect(environments).toHaveLength(1);
  });

  test("waits an hour where not even its failure can be written", async () => {
    const runner = await runnerOf();
    const broken = await overProjects("ship");
    const [action] = await broken.workflows.actions(broken.executionId);
    await damage("workflow_action", action?.id ?? "");
    const other = await overProjects("boat");
    const [next] = await other.workflows.actions(other.executionId);
    expect((await runner.lease(10)).map((work) => actionOf(work).actionId)).toEqual([next?.id]);
    expect(reported).toMatchObject([{ subjectId: action?.id, failed: false }]);
    made.clock.now += HOUR_MS - 1;
    await runner.lease(10);
    expect(reported).toHaveLength(1);
    made.clock.now += 1;
    await runner.lease(10);
    expect(reported).toHaveLength(2);
  });

  test("is carried out once its row is repaired", async () => {
    const runner = await runnerOf();
    const { workflows, executionId } = await overProjects("ship");
    const { body } = await builderOf(made.store.reader)
      .selectFrom("workflow_execution")
      .select("body")
      .where("id", "=", executionId)
      .executeTakeFirstOrThrow();
    await damage("workflow_execution", executionId);
    expect(await runner.lease()).toEqual([]);
    await damage("workflow_execution", executionId, body);
    made.clock.now += HOUR_MS;
    expect(await runner.lease()).toHaveLength(1);
    expect(await workflows.execution(executionId)).toMatchObject({
      status: { phase: ExecutionPhase.RUNNING },
    });
  });
});

testOnSqlite("it bounds the pages of the file")(
  "work stays as it is while the disk has no room for its assignment",
  async () => {
    const runner = await runnerOf();
    const { workflows, executionId } = await overProjects("ship");
    await made.store.write(SYSTEM, "test", async ({ db }) => {
      await sql`create table filler (content blob)`.execute(builderOf(db));
      await sql`create temp trigger fills after insert on environment
      begin insert into filler values (zeroblob(1000000)); end`.execute(builderOf(db));
    });
    const limitPages = (most: number) =>
      made.store.write(SYSTEM, "test", ({ db }) =>
        sql.raw(`pragma max_page_count = ${most}`).execute(builderOf(db)),
      );
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(
      builderOf(made.store.reader),
    );
    const before = (await made.history(caller)).audit.length;
    // Room for every other row of the call.
    await limitPages((rows[0]?.page_count ?? 0) + 100);
    await expect(runner.lease()).rejects.toThrow(StoreUnavailable);
    expect(reported).toEqual([]);
    expect((await made.history(caller)).audit).toHaveLength(before);
    await limitPages(2 ** 30);
    await made.store.write(SYSTEM, "test", ({ db }) => sql`drop trigger fills`.execute(builderOf(db)));
    expect(await runner.lease()).toHaveLength(1);
    expect(await workflows.actions(executionId)).toMatchObject([
      { status: { phase: ActionPhase.RUNNING, failures: [] } },
    ]);
  },
);

describe("a lease that cannot be ended", () => {
  test("keeps no other from its end, even where its next try cannot be written", async () => {
    const runner = await runnerOf();
    const [broken, sound] = [await overProjects("ship"), await overProjects("boat")];
    const [work] = await runner.lease();
    made.clock.now += 1;
    await runner.lease();
    const [action] = await broken.workflows.actions(broken.executionId);
    await damage("workflow_action", action?.id ?? "");
    const message = "no room for the next try";
    await refuse(made.dataDir, {
      name: "keeps",
      on: "update of expires_at on work",
      when: `old.id = '${work?.leaseId}'`,
      message,
    });
    made.clock.now += LEASE_MS;
    const failure = await endExpiredLeases(made.store, made.clock.now).catch((error: unknown) => error);
    expect((failure as AggregateError).errors).toMatchObject([
      { message: expect.stringContaining("JSON") },
      { message },
    ]);
    expect(await sound.workflows.actions(sound.executionId)).toMatchObject([
      { status: { phase: ActionPhase.PENDING } },
    ]);
  });

  test("is tried again in a minute, so that a hundred of them hold up no other", async () => {
    const runner = await runnerOf();
    const { workflows, executionId } = await overProjects("ship");
    await runner.lease();
    const [action] = await workflows.actions(executionId);
    await damage("workflow_action", action?.id ?? "");
    made.clock.now += LEASE_MS;
    await expect(endExpiredLeases(made.store, made.clock.now)).rejects.toThrow("could not be ended");
    expect(await endExpiredLeases(made.store, made.clock.now)).toBe(0);
    made.clock.now += 60_000;
    await expect(endExpiredLeases(made.store, made.clock.now)).rejects.toThrow("could not be ended");
  });
});
