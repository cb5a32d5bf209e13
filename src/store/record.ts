import { diffJson } from "../domain/diff.ts";
import { prepared } from "./prepared.ts";
import type { AuditLogTable, EventTable } from "./schema.ts";
import type { Actor, Change, WriteTransaction } from "./store.ts";

const nextSequence = prepared<{ id: string }, { sequence: number }>((db, { id }) =>
  db
    .updateTable("organization")
    .set((eb) => ({ sequence: eb("sequence", "+", 1) }))
    .where("id", "=", id)
    .returning("sequence"),
);

const insertAuditRow = prepared<AuditLogTable, unknown>((db, row) =>
  db.insertInto("audit_log").values({
    id: row.id,
    organization_id: row.organization_id,
    sequence: row.sequence,
    at: row.at,
    actor_id: row.actor_id,
    actor_principal: row.actor_principal,
    operation: row.operation,
    subject_type: row.subject_type,
    subject_id: row.subject_id,
    reason: row.reason,
    diff: row.diff,
    previous_hash: row.previous_hash,
    hash: row.hash,
    key_id: row.key_id,
  }),
);

const insertEventRow = prepared<EventTable, unknown>((db, row) =>
  db.insertInto("event").values({
    organization_id: row.organization_id,
    sequence: row.sequence,
    at: row.at,
    kind: row.kind,
    resource_type: row.resource_type,
    resource_id: row.resource_id,
  }),
);

/** Writes one audit row and one event row for a change, under the organization's next number. */
export async function insertRecord(
  tx: Omit<WriteTransaction, "record">,
  actor: Actor,
  operation: string,
  change: Change,
): Promise<void> {
  const [counter] = await nextSequence(tx.db, { id: change.organizationId });
  if (!counter)
    throw new Error(`a change names an organization that does not exist: ${change.organizationId}`);
  await insertAuditRow(tx.db, {
    id: tx.newId(),
    organization_id: change.organizationId,
    sequence: counter.sequence,
    at: tx.now,
    actor_id: actor.id,
    actor_principal: actor.principal,
    operation,
    subject_type: change.type,
    subject_id: change.id,
    reason: change.reason ?? "",
    diff: JSON.stringify(diffJson(change.before, change.after)),
    previous_hash: null,
    hash: null,
    key_id: null,
  });
  await insertEventRow(tx.db, {
    organization_id: change.organizationId,
    sequence: counter.sequence,
    at: tx.now,
    kind: change.kind,
    resource_type: change.type,
    resource_id: change.id,
  });
}
