import type { Kysely } from "kysely";
import { auditBytes } from "../domain/audit-chain.ts";
import { diffJson } from "../domain/diff.ts";
import { prepared } from "./prepared.ts";
import type { AuditLogTable, EventTable, Schema } from "./schema.ts";
import type { Actor, Change, WriteTransaction } from "./store.ts";

/** Place of the next row in its chain, and the hash that it continues. */
interface Link {
  readonly sequence: number;
  readonly chain_hash: Uint8Array | null;
}

const nextOfOrganization = prepared<{ id: string }, Link>((db, { id }) =>
  db
    .updateTable("organization")
    .set((eb) => ({ sequence: eb("sequence", "+", 1) }))
    .where("id", "=", id)
    .returning(["sequence", "chain_hash"]),
);

const nextOfInstallation = prepared<object, Link>((db) =>
  db
    .updateTable("installation")
    .set((eb) => ({ sequence: eb("sequence", "+", 1) }))
    .returning(["sequence", "chain_hash"]),
);

const setOrganizationHead = prepared<{ id: string; hash: Uint8Array }, unknown>((db, { id, hash }) =>
  db.updateTable("organization").set({ chain_hash: hash }).where("id", "=", id),
);

const setInstallationHead = prepared<{ hash: Uint8Array }, unknown>((db, { hash }) =>
  db.updateTable("installation").set({ chain_hash: hash }),
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

/** Makes the keyed hash of new audit rows; `keyId` names the secret it is made with. */
export interface AuditSeal {
  readonly keyId: string;
  mac(bytes: Uint8Array): Uint8Array;
}

/**
 * Writes the audit row of a change as the next of its chain, and for a change
 * of an organization's resource the event row of the same number. A read leaves
 * no event: nothing changed.
 */
export async function insertRecord(
  tx: Omit<WriteTransaction, "record">,
  seal: AuditSeal,
  actor: Actor,
  operation: string,
  change: Change,
): Promise<void> {
  const { organizationId } = change;
  const link = await nextLink(tx.db, organizationId);
  const facts = {
    id: tx.newId(),
    organization_id: organizationId,
    sequence: link.sequence,
    at: tx.now,
    actor_id: actor.id,
    actor_principal: actor.principal,
    operation,
    subject_type: change.type,
    subject_id: change.id,
    reason: change.reason ?? "",
    diff: JSON.stringify(diffJson(change.before, change.after)),
    key_id: seal.keyId,
  };
  const hash = seal.mac(auditBytes(facts, link.chain_hash));
  await insertAuditRow(tx.db, { ...facts, previous_hash: link.chain_hash, hash });
  if (organizationId === null) {
    await setInstallationHead(tx.db, { hash });
    return;
  }
  await setOrganizationHead(tx.db, { id: organizationId, hash });
  if (change.kind === "read") return;
  await insertEventRow(tx.db, {
    organization_id: organizationId,
    sequence: link.sequence,
    at: tx.now,
    kind: change.kind,
    resource_type: change.type,
    resource_id: change.id,
  });
}

async function nextLink(db: Kysely<Schema>, organizationId: string | null): Promise<Link> {
  const [link] =
    organizationId === null
      ? await nextOfInstallation(db, {})
      : await nextOfOrganization(db, { id: organizationId });
  if (!link) throw new Error(`a change names an organization that does not exist: ${organizationId}`);
  return link;
}
