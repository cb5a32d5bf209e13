import { type RawBuilder, sql } from "kysely";
import { isOneOf } from "../../expressions.ts";
import { builderOf } from "../../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../../store.ts";
import type { EndedTable } from "./ended.ts";

/** Rows that are removed before those they belong to. */
interface Part {
  readonly table: string;
  readonly key: readonly string[];
  /** The columns that contain its bytes. */
  readonly bytes: readonly string[];
  /** Returns the condition for the rows of the executions to remove, by a list of ids. */
  readonly isOf: (ids: RawBuilder<unknown>) => RawBuilder<unknown>;
}

const ofRun = (ids: RawBuilder<unknown>) => sql`execution_id in (${ids})`;
const ofActions = (ids: RawBuilder<unknown>) =>
  sql`action_id in (select id from workflow_action where execution_id in (${ids}))`;

/** Rows reported for a removed environment in which no other agent execution worked. */
const ofLastRun = (ids: RawBuilder<unknown>) => sql`environment_id in (
  select run.environment_id from agent_execution as run
  where run.id in (${ids})
    and not exists (select 1 from environment where environment.id = run.environment_id)
    and not exists (select 1 from agent_execution as other
      where other.environment_id = run.environment_id and other.id <> run.id))`;

/** Rows that reference a row for an environment that belongs to no action. */
const ofLastRunIn = (parent: string) => (ids: RawBuilder<unknown>) =>
  sql`environment_id in (select environment_id from ${sql.table(parent)}
    where action_id is null and ${ofLastRun(ids)})`;

const ofActionsIn = (parent: string) => (ids: RawBuilder<unknown>) =>
  sql`environment_id in (select environment_id from ${sql.table(parent)} where ${ofActions(ids)})`;

const FILE_DIFFS = {
  table: "environment_file_diff",
  key: ["environment_id", "base", "place"],
  bytes: ["body"],
} as const;

const CONNECTIONS = {
  table: "environment_connection",
  key: ["environment_id", "place"],
  bytes: ["body"],
} as const;

const RUN_PARTS: readonly Part[] = [
  { ...FILE_DIFFS, isOf: ofLastRunIn("environment_changes") },
  { ...CONNECTIONS, isOf: ofLastRunIn("environment_egress") },
  {
    table: "agent_input_image",
    key: ["execution_id", "input_id", "position"],
    bytes: ["data"],
    isOf: ofRun,
  },
  { table: "agent_input", key: ["execution_id", "input_id"], bytes: ["turn", "body"], isOf: ofRun },
  { table: "agent_output", key: ["execution_id", "sequence"], bytes: ["body"], isOf: ofRun },
  { table: "agent_review_draft", key: ["id"], bytes: ["body"], isOf: ofRun },
];

const EXECUTION_PARTS: readonly Part[] = [
  {
    table: "step_log",
    key: ["action_id", "attempt", "step_index", "start"],
    bytes: ["data"],
    isOf: ofActions,
  },
  { ...FILE_DIFFS, isOf: ofActionsIn("environment_changes") },
  { ...CONNECTIONS, isOf: ofActionsIn("environment_egress") },
  { table: "environment_changes", key: ["environment_id"], bytes: ["body", "diffs"], isOf: ofActions },
  { table: "pull_request", key: ["id"], bytes: ["memory", "body"], isOf: ofRun },
  { table: "workflow_action", key: ["id"], bytes: ["outputs", "body", "progress"], isOf: ofRun },
];

const PARTS: Readonly<Record<EndedTable, readonly Part[]>> = {
  workflow_execution: EXECUTION_PARTS,
  agent_execution: RUN_PARTS,
};

const OWN_BYTES: Readonly<Record<EndedTable, readonly string[]>> = {
  workflow_execution: ["variables", "action_failures", "action_warnings", "body", "progress"],
  agent_execution: ["first_turn", "progress", "body"],
};

const bytesOf = (columns: readonly string[]) =>
  sql<number>`(${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`),
    sql` + `,
  )})`;

/** A row of a part: its key, and the bytes that it counts towards the quota. */
export interface PartRow {
  readonly key: readonly (string | number)[];
  readonly bytes: number;
}

/** Rows of one part of a hidden execution. */
export interface PartRows {
  /** The kind of execution that they are parts of. */
  readonly of: Handle<EndedTable>;
  /** The name of their table, and the columns of their keys. */
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly PartRow[];
}

/**
 * Returns up to `limit` rows of the first remaining part of hidden executions; undefined when nothing is left. Nothing
 * is added to hidden executions, so the rows are read before the write that removes them.
 */
export async function findParts(
  db: Reader,
  { organizationId }: Scope,
  table: EndedTable,
  id: string,
  limit: number,
): Promise<PartRows | undefined> {
  const own = sql`select id from ${sql.table(table)} where id = ${id} and organization_id = ${organizationId}`;
  for (const part of PARTS[table]) {
    const rows = await findRows(db, part, own, limit);
    if (rows.length > 0) return { of: id as Handle<EndedTable>, table: part.table, columns: part.key, rows };
  }
  return undefined;
}

async function findRows(
  db: Reader,
  { table, key, bytes, isOf }: Part,
  own: RawBuilder<unknown>,
  limit: number,
): Promise<PartRow[]> {
  const columns = sql.join(key.map((column) => sql.ref(column)));
  const { rows } = await sql<Readonly<Record<string, string | number>> & { readonly bytes: number }>`
    select ${columns}, ${bytesOf(bytes)} as bytes from ${sql.table(table)}
    where ${isOf(own)} limit ${sql.lit(limit)}`.execute(builderOf(db));
  return rows.map((row) => ({ key: key.map((column) => row[column] ?? ""), bytes: row.bytes }));
}

/** Removes some of the rows of a part, without a record. */
export async function removeParts(
  { db }: WriteTransaction,
  { table, columns }: PartRows,
  rows: readonly PartRow[],
): Promise<void> {
  const keys = rows.map(({ key }) => key);
  await sql`delete from ${sql.table(table)} where ${isOneOf(columns, keys)}`.execute(builderOf(db));
}

/** Returns the bytes that executions and their parts count towards the quota. */
export async function findBytes(
  db: Reader,
  { organizationId }: Scope,
  table: EndedTable,
  ids: readonly string[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const list = sql`select id from ${sql.table(table)}
    where id in (${sql.join(ids)}) and organization_id = ${organizationId}`;
  const parts: { table: string; bytes: readonly string[]; isIt: RawBuilder<unknown> }[] = [
    { table, bytes: OWN_BYTES[table], isIt: sql`id in (${list})` },
    ...PARTS[table].map((part) => ({ ...part, isIt: part.isOf(list) })),
  ];
  if (table === "workflow_execution")
    parts.push({ table: "workflow_plan", bytes: ["body"], isIt: ofRun(list) });
  let sum = 0;
  for (const part of parts) {
    const { rows } = await sql<{ bytes: number }>`
      select coalesce(sum(${bytesOf(part.bytes)}), 0) as bytes from ${sql.table(part.table)}
      where ${part.isIt}`.execute(builderOf(db));
    sum += Number(rows[0]?.bytes ?? 0);
  }
  return sum;
}
