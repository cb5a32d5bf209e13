import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { diffOf } from "../../../src/store/record/packed-diff.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { action, Outcome, overRepositories, runnerOf, State, task, workflowsOf } from "./running-workflow.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/workflows.md"), "utf8");

/** A row of the table of docs/workflows.md: a row of the audit trail and the event of the same change. */
interface Recorded {
  readonly when: string;
  readonly resource: string;
  readonly event: string;
  readonly changed: string;
}

/** The fields that are named where a resource was created or deleted. */
const EVERYTHING = "`id`, `metadata`, `spec`, `status`";

/** Returns the rows that the page promises. */
function promisedRows(): Recorded[] {
  const section = PAGE.split("### In the record\n")[1]?.split(/^#/m)[0] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| when"));
  return lines.map((line) => {
    const [when = "", resource = "", event = "", changed = ""] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { when, resource, event, changed: changed === "everything" ? EVERYTHING : changed };
  });
}

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

async function allRows() {
  const reader = builderOf(made.store.reader);
  return {
    audit: await reader.selectFrom("audit_log").selectAll().orderBy("sequence").execute(),
    events: await reader.selectFrom("event").selectAll().orderBy("sequence").execute(),
  };
}

/** Returns a function that returns the rows which were written since its last call. */
async function rowsSince(): Promise<(when: string) => Promise<Recorded[]>> {
  const before = await allRows();
  let [auditRows, eventRows] = [before.audit.length, before.events.length];
  return async (when) => {
    const { audit, events } = await allRows();
    const changes = audit.slice(auditRows).map((row) => ({
      subject: `${row.subject_type} ${row.subject_id}`,
      resource: `\`${row.subject_type}\``,
      changed: Object.keys(JSON.parse(diffOf(row))).map((path) => `\`${path}\``),
    }));
    const newEvents = events.slice(eventRows);
    [auditRows, eventRows] = [audit.length, events.length];
    expect(newEvents.map(({ resource_type, resource_id }) => `${resource_type} ${resource_id}`)).toEqual(
      changes.map(({ subject }) => subject),
    );
    return changes.map(({ resource, changed }, index) => ({
      when,
      resource,
      event: newEvents[index]?.kind ?? "",
      changed: changed.join(", "),
    }));
  };
}

test("an action leaves the rows that docs/workflows.md lists, in that order", async () => {
  const workflows = workflowsOf(made, caller);
  const runner = await runnerOf(made, caller);
  const id = await workflows.make({ triggers: [overRepositories(1)], action: action(1, 1, task(), task()) });
  // The runner's first call makes it active.
  await runner.lease(1);
  const since = await rowsSince();
  await workflows.start(id);
  const rows = await since("start");
  const [{ leaseId, fence }] = (await runner.lease(1)) as [Work];
  rows.push(...(await since("lease")));
  const report = async (progress: object) => {
    const { results } = await runner.operations.reportWorks({
      reports: [{ progress: { leaseId, fence, ...progress } }],
    });
    expect(results.map(({ result }) => result.case)).toEqual(["progress"]);
  };
  const step = (stepIndex: number, state: State) => ({ stepIndex, state });
  await report({ environment: { phase: EnvironmentPhase.RUNNING }, steps: [step(0, State.RUNNING)] });
  rows.push(...(await since("environment up, first step begins")));
  await report({ steps: [step(0, State.DONE), step(1, State.RUNNING)] });
  rows.push(...(await since("first step done, second begins")));
  await report({ steps: [step(1, State.DONE)] });
  rows.push(...(await since("last step done")));
  await runner.operations.finishWork({ leaseId, fence, outcome: Outcome.DONE });
  rows.push(...(await since("end")));
  expect(rows).toEqual(promisedRows());
});
