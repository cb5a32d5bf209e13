import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import type { AuditLogEntrySchema } from "#gen/service/v1/event_pb.js";
import { kindOf } from "./resource-type.ts";
import type { AuditLogTable, Schema } from "./schema.ts";
import type { ResourceType, Scope } from "./store.ts";

/** Which rows of the trail; an empty or unset field restricts nothing. */
export interface AuditLogFilter {
  readonly actorIds: readonly string[];
  /** Principals by number; 0 for the operator and the system. */
  readonly actorPrincipals: readonly number[];
  /** Undefined for all; an empty list matches nothing. */
  readonly subjectTypes: readonly ResourceType[] | undefined;
  readonly subjectIds: readonly string[];
  readonly operations: readonly string[];
  /** Milliseconds since 1970 UTC; the first is part of it, the second is not. */
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
}

/** Up to `limit` rows by sequence descending, before the row with the number `before` when it is given. */
export function listAuditLogs(
  db: Kysely<Schema>,
  { organizationId }: Scope,
  filter: AuditLogFilter,
  before: number | undefined,
  limit: number,
): Promise<AuditLogTable[]> {
  let query = db.selectFrom("audit_log").selectAll().where("organization_id", "=", organizationId);
  if (before !== undefined) query = query.where("sequence", "<", before);
  if (filter.actorIds.length > 0) query = query.where("actor_id", "in", filter.actorIds);
  if (filter.actorPrincipals.length > 0) query = query.where("actor_principal", "in", filter.actorPrincipals);
  if (filter.subjectTypes) query = query.where("subject_type", "in", filter.subjectTypes);
  if (filter.subjectIds.length > 0) query = query.where("subject_id", "in", filter.subjectIds);
  if (filter.operations.length > 0) query = query.where("operation", "in", filter.operations);
  if (filter.startMs !== undefined) query = query.where("at", ">=", filter.startMs);
  if (filter.endMs !== undefined) query = query.where("at", "<", filter.endMs);
  return query.orderBy("sequence", "desc").limit(limit).execute();
}

export function toAuditLogEntry(row: AuditLogTable): MessageInitShape<typeof AuditLogEntrySchema> {
  return {
    id: row.id,
    organizationId: row.organization_id ?? "",
    sequence: BigInt(row.sequence),
    at: timestampFromMs(row.at),
    // The operator and the system are no subjects of the contract.
    ...(row.actor_principal !== 0 && { actor: { id: row.actor_id, principal: row.actor_principal } }),
    operation: row.operation,
    subjectType: kindOf(row.subject_type),
    subjectId: row.subject_id,
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
