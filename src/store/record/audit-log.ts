import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditLogEntryKind } from "#gen/service/v1/event_pb.js";
import type { ListAuditLogsResponse_AuditLogEntrySchema } from "#gen/service/v1/event_service_pb.js";
import type { ListedRow } from "../../domain/page.ts";
import { checkDeadline, unindexed } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { listedRow, textColumns } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { kindOf } from "../resource-type.ts";
import { type Reader, type ResourceType, type Scope, SYSTEM } from "../store.ts";
import { diffOf } from "./packed-diff.ts";
import type { AuditLogTable } from "./record-schema.ts";

/** The conditions for rows of the trail; an empty or unset field restricts nothing. */
export interface AuditLogFilter {
  readonly actorIds: readonly string[];
  /** Principals by number; 0 for the operator and the system. */
  readonly actorPrincipals: readonly number[];
  /** Undefined for all; an empty list matches nothing. */
  readonly subjectTypes: readonly ResourceType[] | undefined;
  readonly subjectIds: readonly string[];
  readonly actions: readonly string[];
  /** Milliseconds since 1970 UTC; the first is inclusive, the second exclusive. */
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
}

/** Direction of the sequence, and the number after which the list begins, if any. */
export interface AuditLogOrder {
  readonly direction: "asc" | "desc";
  readonly after: number | undefined;
}

/** Returns up to `limit` rows in the order of their sequence. */
export async function findAuditLogPage(
  db: Reader,
  { organizationId }: Scope,
  filter: AuditLogFilter,
  { direction, after }: AuditLogOrder,
  limit: number,
): Promise<ListedRow<AuditLogEntry>[]> {
  const all = builderOf(db)
    .selectFrom("audit_log")
    .select([...ENTRY_COLUMNS, "packed_diff", ...textColumns("audit_log.diff")])
    .where(checkDeadline());
  const own = all.where("organization_id", "=", organizationId);
  // The indexes by actor and by subject do not include the organization: few of these have rows in two.
  const isNarrow = filter.actorIds.length > 0 || filter.subjectIds.length > 0;
  let query = isNarrow ? all.where(unindexed("audit_log.organization_id"), "=", organizationId) : own;
  if (filter.actorIds.length > 0) query = query.where("actor_id", "in", filter.actorIds);
  if (filter.actorPrincipals.length > 0) query = query.where("actor_principal", "in", filter.actorPrincipals);
  if (filter.subjectTypes) query = query.where("subject_type", "in", filter.subjectTypes);
  if (filter.subjectIds.length > 0) query = query.where("subject_id", "in", filter.subjectIds);
  if (filter.actions.length > 0) query = query.where("operation", "in", filter.actions);
  if (filter.startMs !== undefined) query = query.where("at", ">=", filter.startMs);
  if (filter.endMs !== undefined) query = query.where("at", "<", filter.endMs);
  const last = after === undefined ? undefined : [after];
  const order: RowOrder = { columns: ["audit_log.sequence"], direction, after: last };
  const rows = await firstRows(own, query, order, limit);
  return rows.map(({ bytes, body: text, packed_diff, ...row }) => {
    const body = packed_diff === null ? text : diffOf({ diff: text ?? "", packed_diff });
    return listedRow(
      // The values of a diff are JSON texts, whose quotes are escaped.
      { ...row, body, bytes: 2 * (packed_diff === null ? bytes : Buffer.byteLength(body ?? "")) },
      { key: row.sequence, id: row.id },
      async () => (await selectDiff(db, { organizationId, sequence: row.sequence }))[0]?.diff,
      ({ body: diff }) => toAuditLogEntry({ ...row, diff }),
    );
  });
}

const ENTRY_COLUMNS = [
  "id",
  "organization_id",
  "sequence",
  "at",
  "actor_id",
  "actor_principal",
  "operation",
  "subject_type",
  "subject_id",
  "reason",
  "hash",
] as const;

const selectDiff = prepared<{ organizationId: string; sequence: number }, { diff: string }>(
  (db, { organizationId, sequence }) =>
    db
      .selectFrom("audit_log")
      .select("diff")
      .where("organization_id", "=", organizationId)
      .where("sequence", "=", sequence),
);

/** Returns what a change changed, by its number in the organization's record; empty if the row was removed. */
export async function findRecordedDiff(
  db: Reader,
  { organizationId }: Scope,
  sequence: number,
): Promise<RecordedDiff> {
  const row = await builderOf(db)
    .selectFrom("audit_log")
    .select(["diff", "packed_diff"])
    .where("organization_id", "=", organizationId)
    .where("sequence", "=", sequence)
    .executeTakeFirst();
  return row ? JSON.parse(diffOf(row)) : {};
}

/** Changed paths with the values before and after. */
export type RecordedDiff = Readonly<Record<string, readonly [unknown, unknown]>>;

/** Returns the row of the organization's trail with an id, or undefined when it has none. */
export async function findAuditLog(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<AuditLogTable | undefined> {
  const row = await builderOf(db)
    .selectFrom("audit_log")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  return row && { ...row, diff: diffOf(row) };
}

/**
 * Resource types with a credential; that of an organization is its invite. Each read of one is recorded as an entry
 * without changes.
 */
const CREDENTIAL_TYPES: ReadonlySet<string> = new Set<ResourceType>([
  "host_token",
  "organization",
  "organization_secret",
  "secret",
  "service_account_secret",
  "user_secret",
  "workflow",
]);

/** Operations on these types that may find nothing to change. */
const CHANGING_OPERATIONS = /\/(Create|Update|Rotate|Delete)\w+$/;

/** The operation of entries that name the secrets that a runner got with a lease. */
export const SECRETS_HANDED_OUT = "secret/handed_out";

function entryKind({ operation, subject_type, diff }: EntryRow): AuditLogEntryKind {
  const isRead =
    operation === SECRETS_HANDED_OUT ||
    (diff === "{}" && CREDENTIAL_TYPES.has(subject_type) && !CHANGING_OPERATIONS.test(operation));
  return isRead ? AuditLogEntryKind.CREDENTIAL_ACCESS : AuditLogEntryKind.RESOURCE_CHANGE;
}

/**
 * Returns the time of the newest row of all chains, in milliseconds since 1970 UTC; undefined when
 * there is none. Only for the operator, who has no scope.
 */
export async function findNewestAuditTime(db: Reader): Promise<number | undefined> {
  // Ids begin with their time, and are never generated out of order.
  const row = await builderOf(db)
    .selectFrom("audit_log")
    .select("at")
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.at;
}

type EntryRow = Pick<AuditLogTable, (typeof ENTRY_COLUMNS)[number] | "diff">;

type AuditLogEntry = MessageInitShape<typeof ListAuditLogsResponse_AuditLogEntrySchema>;

export function toAuditLogEntry(row: EntryRow): AuditLogEntry {
  return {
    id: row.id,
    // The system has no id; the operator is not a principal of the contract, but has a name.
    actorId: row.actor_id === SYSTEM.id ? "" : row.actor_id,
    actorPrincipal: row.actor_principal,
    subjectId: row.subject_id,
    subjectType: kindOf(row.subject_type),
    action: row.operation,
    createdAt: timestampFromMs(row.at),
    kind: entryKind(row),
    organizationId: row.organization_id ?? "",
    sequence: BigInt(row.sequence),
    reason: row.reason,
    changes: changesIn(row.diff),
    ...(row.hash && { hash: new Uint8Array(row.hash) }),
  };
}

function changesIn(diff: string) {
  const changes = Object.entries(JSON.parse(diff) as Record<string, [unknown, unknown]>);
  return changes
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, [before, after]]) => ({
      path,
      before: JSON.stringify(before),
      after: JSON.stringify(after),
    }));
}
