import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The tests that a run on PostgreSQL leaves out, each with its reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "test/crash/agent-lost-turn.test.ts":
    "runners that are killed; test/crash/agent-resume has their runs' rows",
  "test/crash/runner-loss.test.ts":
    "runners that end or are killed; test/crash/workflow-kill has their work's rows",
  "test/e2e/clients.test.ts": "what generators make of the contract, and programs of other teams print",
  "test/e2e/completion.test.ts": "what a shell completes, without a server",
  "test/e2e/earlier-executions.test.ts": "an older release's data folder; test/postgres has its database",
  "test/e2e/embedded-runner-place.test.ts": "the folders of a runner, which knows no database",
  "test/e2e/failing-disk.test.ts": "the disk of the data folder fails, on which that engine forces its log",
  "test/e2e/full-disk.test.ts": "the disk of the data folder is full, on which that engine writes",
  "test/e2e/installation.test.ts": "what npm installs, which is the same on both engines",
  "test/e2e/list-scan.test.ts": "which rows that engine tests outside its main thread",
  "test/e2e/lost-database.test.ts": "the files of a data folder's database",
  "test/e2e/mcp.test.ts": "another protocol for operations whose own tests run on both engines",
  "test/e2e/protocols.test.ts": "forms of one answer on the wire, made of what was read",
  "test/e2e/readme.test.ts": "commands as the page has them, whose servers use a file",
  "test/load/body-budget.test.ts": "bodies that wait in a server's memory before any row is read",
  "test/load/unary-path-large.test.ts": "the thread on which a body is read, before any row is",
  "test/rpc/body-size.test.ts": "caps of bodies; test/load/agent-images has the largest as rows",
  "test/services/project/text-search.test.ts": "that a search asks that engine's thread and no other",
  "test/services/record/event-feed.test.ts":
    "counts turns of the event loop, in which only that engine answers",
  "test/services/runner/work-wait.test.ts":
    "counts turns of the event loop, in which only that engine answers",
  "test/services/search-row.test.ts": "numbers of rows in that engine's index of texts",
  "test/services/search-thread.test.ts": "the thread on which that engine searches",
  "test/store/checkpoints.test.ts": "the log next to the file and its checkpoints",
  "test/store/failed-force.test.ts": "the disk fails to force the file",
  "test/store/lock.test.ts": "the lock of a data folder",
  "test/store/long-write.test.ts": "pauses of the one writer, counted in turns of the event loop",
  "test/store/migrate.test.ts": "that engine's migrations, from its first release on",
  "test/store/migrated-rows.test.ts": "rows that releases before the other engine wrote",
  "test/store/project/text-index.test.ts": "segments of that engine's index of texts",
  "test/store/query-plan.test.ts": "that engine's plans",
  "test/store/workflow/migrated-progress.test.ts": "rows of a file, rewritten by that engine's migration",
  "test/store/stuck-write.test.ts":
    "the one writer; a connection that is idle in a transaction is ended by its database",
};

/**
 * Returns the files of tests that a run on PostgreSQL leaves out.
 * @throws Error when one of them no longer exists
 */
export function leftOutOnPostgres(): readonly string[] {
  const files = Object.keys(LEFT_OUT);
  const absent = files.filter((file) => !existsSync(join(root, file)));
  if (absent.length > 0)
    throw new Error(`left-out-on-postgres.ts lists what does not exist: ${absent.join(", ")}`);
  return files;
}
