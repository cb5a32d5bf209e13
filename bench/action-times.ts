import { join } from "node:path";
import Database from "better-sqlite3";

/** The timestamps of an execution, in milliseconds since 1970 UTC. */
export interface ExecutionTimes {
  readonly startedAt: number;
  /** Of each action, in order. */
  readonly actionsStartedAt: readonly number[];
  readonly actionsFinishedAt: readonly number[];
}

/** Reads the state of the server's executions from its database while it runs. */
export function openTimes(dataDir: string) {
  const db = new Database(join(dataDir, "chartroom.db"), { readonly: true });
  const open = db.prepare("select count(*) from workflow_execution where finished_at is null").pluck();
  const failed = db.prepare("select count(*) from workflow_action where phase <> 7 or failed = 1").pluck();
  return {
    /** Returns the number of executions that have not ended. */
    openCount: () => open.get() as number,
    /** Returns the number of actions that have not succeeded. */
    failedCount: () => failed.get() as number,
    read: () => readTimes(db),
    close: () => db.close(),
  };
}

function readTimes(db: Database.Database): ExecutionTimes[] {
  const rows = db
    .prepare(
      `select execution_id as id, workflow_execution.started_at as began, workflow_action.started_at as started,
        workflow_action.finished_at as finished
      from workflow_action join workflow_execution on workflow_execution.id = execution_id`,
    )
    .all() as { id: string; began: number; started: number; finished: number }[];
  return [...Map.groupBy(rows, ({ id }) => id).values()].map((own) => ({
    startedAt: own[0]?.began ?? Number.NaN,
    actionsStartedAt: own.map(({ started }) => started).toSorted((a, b) => a - b),
    actionsFinishedAt: own.map(({ finished }) => finished).toSorted((a, b) => a - b),
  }));
}
