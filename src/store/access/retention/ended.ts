import { type RawBuilder, sql } from "kysely";
import { checkDeadline } from "../../expressions.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";

/** The tables of what runs and ends, and the column of the end time. */
const END = { workflow_execution: "finished_at", agent_execution: "stopped_at" } as const;

export type EndedTable = keyof typeof END;

/** Something that has ended, and its position in the order of processing. */
export interface Ended {
  readonly id: string;
  /** Milliseconds since 1970 UTC. */
  readonly endedAt: number;
}

/** The rows that ended before a time; with `upTo`, only the part of a workflow or an organization that began that early. */
export interface EndedQuery {
  readonly table: EndedTable;
  /** Milliseconds since 1970 UTC. */
  readonly before: number;
  readonly upTo?: { readonly id: string; readonly workflowId: string | undefined };
}

/** Returns up to `limit` ended rows after `after`. They may still be needed: see removable.ts. */
export async function findEnded(
  db: Reader,
  { organizationId }: Scope,
  { table, before, upTo }: EndedQuery,
  after: Ended | undefined,
  limit: number,
): Promise<Ended[]> {
  const end = sql.ref<number>(END[table]);
  const isOf = upTo?.workflowId === undefined ? sql`true` : sql`workflow_id = ${upTo.workflowId}`;
  const isPast = upTo ? sql`id <= ${upTo.id} and ${end} < ${before}` : sql`${end} < ${before}`;
  const { rows } = await sql<Ended>`select id, ${end} as ${sql.ref("endedAt")} from ${sql.table(table)}
    where ${checkDeadline()} and organization_id = ${organizationId} and ${isOf} and ${isPast}
      and removed_at is null and ${positionAfter(upTo !== undefined, end, after)}
    order by ${upTo ? sql`id` : sql`${end}, id`} limit ${sql.lit(limit)}`.execute(builderOf(db));
  return rows;
}

function positionAfter(byId: boolean, end: RawBuilder<number>, after: Ended | undefined) {
  if (!after) return sql`true`;
  return byId ? sql`id > ${after.id}` : sql`(${end}, id) > (${after.endedAt}, ${after.id})`;
}

/**
 * Returns the id of the newest row past a count, so that the `count` newest ended rows come after it. Undefined when
 * there are no more than `count`.
 */
export async function findPastCount(
  db: Reader,
  { organizationId }: Scope,
  table: EndedTable,
  workflowId: string | undefined,
  count: number,
): Promise<string | undefined> {
  const isOf = workflowId === undefined ? sql`true` : sql`workflow_id = ${workflowId}`;
  const { rows } = await sql<{ id: string }>`select id from ${sql.table(table)}
    where ${checkDeadline()} and organization_id = ${organizationId} and ${isOf}
      and ${sql.ref(END[table])} is not null and removed_at is null
    order by id desc limit 1 offset ${sql.lit(count)}`.execute(builderOf(db));
  return rows[0]?.id;
}

/** Returns the ids of the workflows of an organization. */
export async function findWorkflowIds(db: Reader, { organizationId }: Scope): Promise<string[]> {
  const rows = await builderOf(db)
    .selectFrom("workflow")
    .select("id")
    .where("organization_id", "=", organizationId)
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}
