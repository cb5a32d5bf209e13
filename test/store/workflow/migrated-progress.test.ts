import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "@jest/globals";
import type Database from "better-sqlite3";
import { openConnection } from "../../../src/store/sqlite/connection.ts";
import { MIGRATIONS, migrate } from "../../../src/store/sqlite/migrate.ts";
import { DATABASE_FILE } from "../../../src/store/sqlite/open.ts";
import { endNodes, startNode } from "../../harness/node-process.ts";
import { stopAll, temporaryFolder } from "../../harness/server.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

const ACTIONS = 1_200;
/** The last row that is read before the process is killed: in the second portion. */
const LAST_READ = 700;

let file: string;
beforeEach(() => {
  file = join(temporaryFolder(), DATABASE_FILE);
  within((raw) => {
    migrate(
      raw,
      MIGRATIONS.slice(
        0,
        MIGRATIONS.findIndex(({ name }) => name === "0021-workflow-progress"),
      ),
    );
    raw.exec(`insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0);
      insert into workflow (id, organization_id, creator_id, executor_id, executor_principal, disabled,
        deleting, sort_name, search_text, body) values ('w', 'o', '', '', 0, 0, 0, '', '', '{}');
      insert into workflow_execution (id, organization_id, workflow_id,
        trigger_kind, creator_id, executor_id, executor_principal, phase, desired_phase, expanded, failed,
        pending_count, running_count, failed_count, done_count, stopped_count, started_at, search_text,
        variables, body)
      values ('e', 'o', 'w', 'manual', '', '', 0, 2, 7, 1, 0, 0, 0, 0, 0, 0, 0, '', '{}', '{"id":"e"}')`);
    const insert = raw.prepare(`insert into workflow_action (id, organization_id, workflow_id, execution_id,
      is_report, phase, desired_phase, queued, failed, body) values (?, 'o', 'w', 'e', 0, 7, 7, 0, 0, ?)`);
    for (let index = 0; index < ACTIONS; index++) insert.run(`a${index}`, bodyOf(index));
  });
});

function within<T>(run: (raw: Database.Database) => T): T {
  const { raw, close } = openConnection(file, "writer");
  try {
    return run(raw);
  } finally {
    close();
  }
}

/** Every hundredth cannot be read. */
function bodyOf(index: number): string {
  if (index % 100 === 50) return "{";
  const status = { session: "s", attempt: 2, stepStatuses: [{ stepIndex: 0, phase: "STEP_PHASE_DONE" }] };
  const metadata = { actionName: `r${index}`, finishedAt: "1970-01-01T00:00:01Z", report: false };
  return JSON.stringify({ id: `a${index}`, metadata, spec: { session: "s", context: {} }, status });
}

const filled = () =>
  within((raw) =>
    raw.prepare("select count(*) from workflow_action where progress is not null").pluck().get(),
  );

describe("a start that rewrites the rows of executions", () => {
  /** Migrates the file that it is given, and is suspended in the second portion of actions. */
  const MIGRATOR = `
    import { writeSync } from "node:fs";
    import { openConnection } from "./src/store/sqlite/connection.ts";
    import { MIGRATIONS, migrate } from "./src/store/sqlite/migrate.ts";
    const { raw } = openConnection(await nextLine(), "writer");
    let left = ${LAST_READ};
    const slowly = (fill) => ({
      ...fill,
      rewrite: (row) => {
        if (fill.table === "workflow_action" && left-- === 0) {
          writeSync(1, "true\\n");
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
        }
        return fill.rewrite(row);
      },
    });
    migrate(raw, MIGRATIONS.map((each) => ("fills" in each ? { ...each, fills: each.fills.map(slowly) } : each)));
  `;

  test("and is killed in between keeps whole portions, and the next one does the others", async () => {
    const migrator = startNode(MIGRATOR);
    migrator.send(file);
    expect(await migrator.next()).toBe(true);
    await migrator.kill();
    expect(filled()).toBe(500);
    const reported: unknown[] = [];
    const progresses = (...each: unknown[]) => void reported.push(each);
    const [next] = within((raw) => migrate(raw, MIGRATIONS, { progresses }));
    expect(next).toBe("0022-workflow-progress-rows");
    expect(reported).toEqual([["workflow_action", ACTIONS - 500, ACTIONS - 500]]);
    expect(filled()).toBe(ACTIONS);
    const rows = within((raw) =>
      raw
        .prepare<[], Record<string, unknown>>(
          "select id, session, finished_at, attempt, progress, body from workflow_action order by id",
        )
        .all(),
    );
    for (const { id, ...row } of rows) {
      const index = Number(String(id).slice(1));
      const unread = { session: "", finished_at: null, attempt: 0, progress: "{}", body: "{" };
      const progress = JSON.stringify({ stepStatuses: [{ phase: "STEP_PHASE_DONE" }] });
      const body = JSON.stringify({ metadata: { actionName: `r${index}` }, spec: { context: {} } });
      const read = { session: "s", finished_at: 1_000, attempt: 2, progress, body };
      expect(row).toEqual(bodyOf(index) === "{" ? unread : read);
    }
  });

  test("is not that of a command next to a server, which may be an older one", () => {
    expect(() => within((raw) => migrate(raw, MIGRATIONS, { raisesLevel: false }))).toThrow(
      "the data is of an earlier release, whose server may still run: start this one first",
    );
    within((raw) => migrate(raw));
    expect(within((raw) => migrate(raw, MIGRATIONS, { raisesLevel: false }))).toEqual([]);
  });
});
