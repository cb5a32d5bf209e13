import { diffJson, parseSource } from "../../domain/diff.ts";
import { creatorIdIn, type EventFacts } from "../../domain/event-facts.ts";
import { type AuditFacts, auditBytes } from "../../domain/record/audit-chain.ts";
import { prepared, preparedForRows, ROWS_PER_RUN } from "../prepared.ts";
import type { Actor, Change, Reader, WriteTransaction } from "../store.ts";
import type { WriteBackRow } from "../write-back-row.ts";
import { packDiff } from "./packed-diff.ts";
import type { AuditLogTable, EventTable } from "./record-schema.ts";

/** Number of the newest row of a chain, and the hash that the next one continues. */
interface Head {
  readonly sequence: number;
  readonly chain_hash: Uint8Array | null;
}

const headOfOrganization = prepared<{ id: string }, Head>((db, { id }) =>
  db.selectFrom("organization").select(["sequence", "chain_hash"]).where("id", "=", id),
);

const headOfInstallation = prepared<object, Head>((db) =>
  db.selectFrom("installation").select(["sequence", "chain_hash"]),
);

const setOrganizationHead = prepared<{ id: string; sequence: number; hash: Uint8Array | null }, unknown>(
  (db, { id, sequence, hash }) =>
    db.updateTable("organization").set({ sequence, chain_hash: hash }).where("id", "=", id),
);

const setInstallationHead = prepared<{ sequence: number; hash: Uint8Array | null }, unknown>(
  (db, { sequence, hash }) => db.updateTable("installation").set({ sequence, chain_hash: hash }),
);

/** The head of an organization's chain, or of the installation's (null). */
const HEAD: WriteBackRow<string | null, Head> = {
  async read(db, organizationId) {
    const [head] =
      organizationId === null
        ? await headOfInstallation(db, {})
        : await headOfOrganization(db, { id: organizationId });
    if (!head) throw new Error(`a change names an organization that does not exist: ${organizationId}`);
    return head;
  },
  write: (db, organizationId, { sequence, chain_hash: hash }) =>
    organizationId === null
      ? setInstallationHead(db, { sequence, hash })
      : setOrganizationHead(db, { id: organizationId, sequence, hash }),
};

/**
 * Reads the head of a chain before its rows are written.
 * @throws when there is no such organization
 */
export const readHeadAhead = (
  held: Pick<WriteTransaction, "readWriteBack">,
  organizationId: string | null,
): Promise<unknown> => held.readWriteBack(HEAD, organizationId);

const insertAuditRows = preparedForRows<AuditLogTable>((db, rows) =>
  db.insertInto("audit_log").values(
    rows.map((row) => ({
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
      packed_diff: row.packed_diff,
    })),
  ),
);

const insertEventRows = preparedForRows<EventTable>((db, rows) =>
  db.insertInto("event").values(
    rows.map((row) => ({
      organization_id: row.organization_id,
      sequence: row.sequence,
      at: row.at,
      kind: row.kind,
      resource_type: row.resource_type,
      resource_id: row.resource_id,
      creator_id: row.creator_id,
      owner_id: row.owner_id,
      environment_id: row.environment_id,
    })),
  ),
);

/** Computes the keyed hash of new audit rows; `keyId` names the secret that it uses. */
export interface AuditSeal {
  readonly keyId: string;
  mac(bytes: Uint8Array): Uint8Array;
}

/**
 * The rows of a change for the audit log and the event feed, except their position in the chain.
 */
export interface PendingRecord {
  readonly facts: Omit<AuditFacts, "sequence">;
  /** Undefined for a change that does not concern a resource of an organization. */
  readonly event: (EventFacts & Pick<EventTable, "kind">) | undefined;
}

/**
 * Builds the record of a change. A read leaves no event: nothing changed.
 */
export function buildRecord(
  tx: Pick<WriteTransaction, "newId" | "now">,
  seal: AuditSeal,
  actor: Actor,
  operation: string,
  change: Change,
): PendingRecord {
  const { organizationId, kind } = change;
  const author = change.actor ?? actor;
  const before = parseSource(change.before);
  const after = parseSource(change.after);
  const facts = {
    id: tx.newId(),
    organization_id: organizationId,
    at: tx.now,
    actor_id: author.id,
    actor_principal: author.principal,
    operation: change.operation ?? operation,
    subject_type: change.type,
    subject_id: change.id,
    reason: change.reason ?? "",
    diff: JSON.stringify(diffJson(before, after)),
    key_id: seal.keyId,
  };
  if (organizationId === null || kind === "read") return { facts, event: undefined };
  const eventFacts: EventFacts = {
    creatorId: creatorIdIn(kind === "deleted" ? before : after),
    ownerId: null,
    environmentId: change.type === "environment" ? change.id : null,
    ...change.facts,
  };
  return { facts, event: { kind, ...eventFacts } };
}

/**
 * Writes the audit rows of changes, each as the next of its chain, and their event rows under the
 * same numbers. Those of a commit are written together, at its end: individually, between other
 * statements, they cost more. For the same reason events come after all audit rows.
 */
export async function insertRecords(
  db: Reader,
  held: Pick<WriteTransaction, "readWriteBack" | "setWriteBack">,
  seal: AuditSeal,
  records: readonly PendingRecord[],
): Promise<void> {
  const events: EventTable[] = [];
  const heads = new Map<string | null, Head>();
  let audit: AuditLogTable[] = [];
  for (const { facts, event } of records) {
    const { organization_id, at, subject_type, subject_id } = facts;
    const head = heads.get(organization_id) ?? (await held.readWriteBack(HEAD, organization_id));
    const sequence = head.sequence + 1;
    const hash = seal.mac(auditBytes({ ...facts, sequence }, head.chain_hash));
    // The previous row has its hash.
    audit.push({ ...facts, ...packDiff(facts.diff), sequence, previous_hash: null, hash });
    heads.set(organization_id, { sequence, chain_hash: hash });
    // Written one statement at a time, so that reads run in between.
    if (audit.length === ROWS_PER_RUN) {
      await insertAuditRows(db, audit);
      audit = [];
    }
    if (organization_id === null || event === undefined) continue;
    events.push({
      organization_id,
      sequence,
      at,
      kind: event.kind,
      resource_type: subject_type,
      resource_id: subject_id,
      creator_id: event.creatorId,
      owner_id: event.ownerId,
      environment_id: event.environmentId,
    });
  }
  for (const [organizationId, head] of heads) held.setWriteBack(HEAD, organizationId, head);
  await insertAuditRows(db, audit);
  await insertEventRows(db, events);
}
