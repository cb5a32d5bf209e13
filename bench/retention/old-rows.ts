import { columnsOf, type RawData } from "../../test/harness/raw-data.ts";

/** Number of actions of an execution, and of output portions of each. An execution has 300 rows. */
export const ACTIONS = 20;
export const OUTPUTS = 14;
const DAY_MS = 86_400_000;
/** An upper estimate of the average size of a row, as it is counted for its organization. */
const BYTES = 1_000;

/** The parameters of the old rows. */
export interface Filling {
  readonly organizationId: string;
  /** The execution to copy. */
  readonly executionId: string;
  readonly rows: number;
}

/** Returns twelve digits of a number, the end of an id. */
function digits(number: string): string {
  return `substr(cast(1000000000000 + ${number} as text), 2)`;
}

/**
 * Copies an ended execution until there are `rows` rows, half of them events. All rows, and the organization's existing
 * events, become a month old. Adds the counts that triggers would maintain in one step.
 */
export async function fillWithOldRows(
  raw: RawData,
  { organizationId, executionId, rows: wanted }: Filling,
): Promise<void> {
  const copies = Math.ceil(wanted / 2 / (1 + ACTIONS * (1 + OUTPUTS)));
  const at = Date.now() - 30 * DAY_MS;
  const numbers = (count: number) =>
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})`;
  const copyId = `substr('${executionId}', 1, 24) || ${digits("n.i")}`;
  const place = `(select count(*) from workflow_action as other where other.execution_id = a.execution_id and other.id <= a.id)`;
  const actionId = `substr(a.id, 1, 24) || ${digits(`n.i * 1000 + ${place}`)}`;
  await raw.beginLocked();
  await copyRows(raw, "workflow_execution", {
    from: `${numbers(copies)} select %s from workflow_execution as a, n where a.id = '${executionId}'`,
    values: {
      id: copyId,
      started_at: `${at}`,
      finished_at: `${at}`,
      body: `replace(a.body, '${executionId}', ${copyId})`,
    },
  });
  await copyRows(raw, "workflow_action", {
    from: `${numbers(copies)} select %s from workflow_action as a, n where a.execution_id = '${executionId}'`,
    values: {
      id: actionId,
      execution_id: copyId,
      finished_at: `${at}`,
      body: `replace(replace(a.body, '${executionId}', ${copyId}), a.id, ${actionId})`,
    },
  });
  const bytes = raw.isPostgres ? "convert_to(repeat('a line of output ', 15), 'UTF8')" : "zeroblob(240)";
  await raw.run(
    `insert into step_log (action_id, attempt, step_index, start, data)
      ${numbers(OUTPUTS)} select a.id, 1, 0, n.i * 240, ${bytes} from workflow_action as a, n
      where a.execution_id <> '${executionId}'`,
  );
  const [last] = await raw.rows<{ sequence: number }>(
    "select sequence from organization where id = ?",
    organizationId,
  );
  const events = Math.ceil(wanted / 2);
  // Events are removed from the oldest up to the first one that is kept.
  await raw.run(`update event set at = ${at} where organization_id = '${organizationId}'`);
  await raw.run(
    `insert into event (organization_id, sequence, at, kind, resource_type, resource_id)
      ${numbers(events)} select '${organizationId}', ${last?.sequence} + n.i, ${at}, 'updated', 'project', '${executionId}' from n`,
  );
  await raw.run(`update organization set sequence = sequence + ${events} where id = '${organizationId}'`);
  await raw.run(
    `update organization_storage set bytes = bytes + ${wanted * BYTES} where organization_id = '${organizationId}'`,
  );
  await raw.run("commit");
  // Simulate a database that has had this size for a while: rows of a month ago have long been written to disk.
  if (raw.isPostgres) for (const statement of ["analyze", "checkpoint"]) await raw.run(statement);
  process.stderr.write(`filled: ${copies} executions, ${events} events\n`);
}

/** Inserts the rows of a query into a table, with some values replaced. */
async function copyRows(
  raw: RawData,
  table: string,
  { from, values }: { readonly from: string; readonly values: Readonly<Record<string, string>> },
): Promise<void> {
  const columns = await columnsOf(raw, table);
  const chosen = columns.map((column) => values[column] ?? `a.${column}`);
  await raw.run(`insert into ${table} (${columns.join(", ")}) ${from.replace("%s", chosen.join(", "))}`);
}
