import { createHash } from "node:crypto";
import {
  TriggerVerdict,
  type WorkflowTriggerEvent,
  WorkflowTriggerEventSchema,
} from "#gen/service/v1/workflow_pb.js";
import { type ListedRow, positionById } from "../../domain/page.ts";
import { checkDeadline, isOneOf, octets } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkflowTriggerEventTable } from "./workflow-schema.ts";

/**
 * Maximum length of a key that is stored as it is, in bytes. That of a pull request contains a clone URL, which has up
 * to 18,000 once it is escaped; an index of PostgreSQL takes 2,700.
 */
const KEY_MAX_BYTES = 1_024;

/** Returns a deduplication key in its stored form: a long one as its hash. */
export function storedKey(key: string): string {
  if (Buffer.byteLength(key) <= KEY_MAX_BYTES) return key;
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

/** The stored values of a ledger entry that no response contains. */
export interface TriggerEventFacts {
  /** Key that is unique within its workflow; null if an equal entry may follow. */
  readonly dedupeKey: string | null;
  /** JSON of the data that a redelivery needs besides the entry; `{}` without. */
  readonly payload: string;
}

const insertRow = prepared<WorkflowTriggerEventTable, unknown>((db, row) =>
  db.insertInto("workflow_trigger_event").values({
    id: row.id,
    organization_id: row.organization_id,
    workflow_id: row.workflow_id,
    at: row.at,
    source: row.source,
    verdict: row.verdict,
    dedupe_key: row.dedupe_key,
    execution_id: row.execution_id,
    payload: row.payload,
    body: row.body,
  }),
);

/** Writes a new entry. It leaves no audit row: the ledger is a record itself. */
export async function insertTriggerEvent(
  tx: WriteTransaction,
  scope: Scope,
  event: WorkflowTriggerEvent,
  { dedupeKey, payload }: TriggerEventFacts,
): Promise<void> {
  await insertRow(tx.db, {
    id: event.id,
    organization_id: scope.organizationId,
    workflow_id: event.workflowId,
    at: tx.now,
    source: event.source,
    verdict: event.verdict,
    dedupe_key: dedupeKey === null ? null : storedKey(dedupeKey),
    execution_id: event.workflowExecutionId === "" ? null : event.workflowExecutionId,
    payload,
    body: toBody(WorkflowTriggerEventSchema, event),
  });
  tx.countOutcome({ of: "trigger event", as: TriggerVerdict[event.verdict].toLowerCase() });
}

const selectEvent = prepared<{ id: string; organizationId: string }, { body: string; payload: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow_trigger_event")
      .select(["body", "payload"])
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findTriggerEvent(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<{ readonly event: WorkflowTriggerEvent; readonly payload: string } | undefined> {
  const [row] = await selectEvent(db, { id, organizationId: scope.organizationId });
  return row && { event: fromBody(WorkflowTriggerEventSchema, row.body), payload: row.payload };
}

const selectByKey = prepared<
  { workflowId: string; dedupeKey: string; organizationId: string },
  { body: string }
>((db, { workflowId, dedupeKey, organizationId }) =>
  db
    .selectFrom("workflow_trigger_event")
    .select("body")
    .where("workflow_id", "=", workflowId)
    .where("dedupe_key", "=", dedupeKey)
    .where("organization_id", "=", organizationId),
);

/** Returns the entry with a key of its workflow. */
export async function findTriggerEventByKey(
  db: Reader,
  scope: Scope,
  workflowId: string,
  dedupeKey: string,
): Promise<WorkflowTriggerEvent | undefined> {
  const { organizationId } = scope;
  const [row] = await selectByKey(db, { workflowId, dedupeKey: storedKey(dedupeKey), organizationId });
  return row && fromBody(WorkflowTriggerEventSchema, row.body);
}

/** The conditions for entries; an empty list restricts nothing. */
export interface TriggerEventFilter {
  readonly workflowIds: readonly string[];
  /** TriggerVerdict by number. */
  readonly verdicts: readonly number[];
}

/**
 * Returns up to `limit` entries by id descending, before the one with the id `before`, if given.
 */
export async function findTriggerEventPage(
  db: Reader,
  scope: Scope,
  { workflowIds, verdicts }: TriggerEventFilter,
  before: string | undefined,
  limit: number,
): Promise<ListedRow<WorkflowTriggerEvent>[]> {
  const own = builderOf(db)
    .selectFrom("workflow_trigger_event")
    .select(["id", ...bodyColumns("workflow_trigger_event")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (workflowIds.length > 0) query = query.where("workflow_id", "in", workflowIds);
  if (verdicts.length > 0) query = query.where("verdict", "in", verdicts);
  const after = before === undefined ? undefined : [before];
  const order: RowOrder = { columns: ["workflow_trigger_event.id"], direction: "desc", after };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "workflow_trigger_event", rows, positionById, ({ body }) =>
    fromBody(WorkflowTriggerEventSchema, body),
  );
}

/** The entries of a ledger to read: those of an organization, or of a workflow up to an id. */
export interface LedgerPart {
  readonly upTo?: { readonly workflowId: string; readonly id: string };
}

/** Returns up to `limit` entries after an id, the oldest first, with the time at which each was entered. */
export function findOldestTriggerEvents(
  db: Reader,
  { organizationId }: Scope,
  { upTo }: LedgerPart,
  after: string,
  limit: number,
): Promise<{ readonly id: string; readonly at: number; readonly bytes: number }[]> {
  let query = builderOf(db)
    .selectFrom("workflow_trigger_event")
    .select(["id", "at"])
    .select((eb) =>
      eb(octets("workflow_trigger_event.payload"), "+", octets("workflow_trigger_event.body")).as("bytes"),
    )
    .where("organization_id", "=", organizationId)
    .where("id", ">", after);
  if (upTo) query = query.where("workflow_id", "=", upTo.workflowId).where("id", "<=", upTo.id);
  return query.orderBy("id").limit(limit).execute();
}

/** Returns the id of the newest entry of a workflow that is not among the `count` newest; undefined for none. */
export async function findPastTriggerEventCount(
  db: Reader,
  { organizationId }: Scope,
  workflowId: string,
  count: number,
): Promise<string | undefined> {
  const row = await builderOf(db)
    .selectFrom("workflow_trigger_event")
    .select("id")
    .where(checkDeadline())
    .where("workflow_id", "=", workflowId)
    .where("organization_id", "=", organizationId)
    .orderBy("id", "desc")
    .offset(count)
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/**
 * Removes entries of an organization, without a record.
 * @returns the number of removed entries
 */
export async function removeTriggerEvents(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<number> {
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("workflow_trigger_event")
    .where("organization_id", "=", organizationId)
    .where(
      isOneOf(
        ["id"],
        ids.map((id) => [id]),
      ),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}
