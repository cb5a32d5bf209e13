import { columnsOf, type RawData } from "../../test/harness/raw-data.ts";

/** Actions of an execution, and portions of output of each: 300 rows go with it. */
export const ACTIONS = 20;
export const OUTPUTS = 14;
const DAY_MS = 86_400_000;
/** More than a row has on average of what is counted of its organization. */
const BYTES = 1_000;

/** What data is filled with. */
export interface Filling {
  readonly organizationId: string;
  /** The execution of which the others are copies. */
  readonly executionId: string;
  readonly rows: number;
}

/** Returns twelve digits of a number, the end of an id. */
function digits(number: string): string {
  return `substr(cast(1000000000000 + ${number} as text), 2)`;
}

/**
 * Copies an ended execution until there are so many rows, half of them events, all a month old, as the
 * organization's other events then are. What triggers would count is added at once.
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
  // They go from the oldest on, up to the first that is kept.
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
  // As it would be after a while of such a size: what was written a month ago is on the disk, which is not busy with it.
  if (raw.isPostgres) for (const statement of ["analyze", "checkpoint"]) await raw.run(statement);
  process.stderr.write(`filled: ${copies} executions, ${events} events\n`);
}

/** Inserts rows of a table that are those of a query, but for these values. */
async function copyRows(
  raw: RawData,
  table: string,
  { from, values }: { readonly from: string; readonly values: Readonly<Record<string, string>> },
): Promise<void> {
  const columns = await columnsOf(raw, table);
  const chosen = columns.map((column) => values[column] ?? `a.${column}`);
  await raw.run(`insert into ${table} (${columns.join(", ")}) ${from.replace("%s", chosen.join(", "))}`);
}
