import type { WorkKind } from "#gen/runner/v1/work_pb.js";
import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import { readyWorkOf, STOP, type StoredWork, type WithAgentKind } from "./work.ts";

interface NewLease extends LeasedSubject {
  readonly id: string;
  readonly leasedBy: string;
  readonly instanceId: string | null;
  readonly expiresAt: number;
  readonly idleSince: number | null;
}

const setLease = prepared<NewLease, { id: string }>(
  (db, { id, kind, subject_id, runner_id, leasedBy, instanceId, expiresAt, idleSince }) =>
    db
      .updateTable("work")
      .set((eb) => ({
        kind,
        subject_id,
        runner_id,
        leased_by: leasedBy,
        instance_id: instanceId,
        expires_at: expiresAt,
        idle_since: idleSince,
        waiting_since: null,
        attempt: eb("attempt", "+", 1),
        fence: eb("fence", "+", 1),
      }))
      .where("id", "=", id)
      .where("leased_by", "is", null)
      .returning("id"),
);

const setTurn = prepared<{ organizationId: string; turn: number }, unknown>((db, { organizationId, turn }) =>
  db
    .insertInto("work_turn")
    .values({ organization_id: organizationId, turn })
    .onConflict((conflict) =>
      conflict
        .column("organization_id")
        .doUpdateSet({ turn: (eb) => eb.ref("excluded.turn") })
        // Returned work keeps its place, and its turn may be long past.
        .whereRef("work_turn.turn", "<", "excluded.turn"),
    ),
);

/** The columns of work that a lease may change: its kind and subject, and the only runner that can do it. */
export type LeasedSubject = Pick<StoredWork, "kind" | "subject_id" | "runner_id">;

interface ClaimOptions {
  readonly runnerId: string;
  /** The instance of the runner; empty for none. */
  readonly instanceId: string;
  readonly leaseMs: number;
  /** Omitted when kind and subject stay the same. */
  readonly leasedAs?: LeasedSubject | undefined;
  /** Time since when an agent execution could release its slot; null or omitted for other work. */
  readonly idleSince?: number | null | undefined;
}

/** Work that is leased to a runner. */
export interface ClaimedWork {
  readonly leased: StoredWork;
  /**
   * To be awaited before the end of the write; several can be awaited together. @throws Error when the work was held
   */
  readonly confirmed: Promise<void>;
}

/**
 * Leases work that nobody holds to a runner, with the next fence.
 *
 * @param work as it was found in this transaction
 */
export async function claimWork(
  tx: WriteTransaction,
  work: StoredWork,
  { runnerId, instanceId, leaseMs, leasedAs = work, idleSince = null }: ClaimOptions,
): Promise<ClaimedWork> {
  const { id, organization_id: organizationId, turn, attempt, fence } = work;
  const { kind, subject_id, runner_id } = leasedAs;
  const expiresAt = tx.now + leaseMs;
  const subject = { kind, subject_id, runner_id };
  const holder = { leasedBy: runnerId, instanceId: instanceId || null };
  const confirmed = Promise.all([
    setLease(tx.db, { id, ...subject, ...holder, expiresAt, idleSince }),
    setTurn(tx.db, { organizationId, turn }),
  ]).then(([rows]) => {
    if (rows.length === 0) throw new Error(`the work ${id} is leased already`);
  });
  confirmed.catch(() => {});
  const leased = {
    ...work,
    ...subject,
    leased_by: holder.leasedBy,
    instance_id: holder.instanceId,
    expires_at: expiresAt,
    idle_since: idleSince,
    waiting_since: null,
    attempt: attempt + 1,
    fence: fence + 1,
  };
  return { leased, confirmed };
}

/** A lease with whether the account that its work is done for is blocked. */
export type StoredLease = StoredWork & {
  readonly blocked_at: number | null;
};

const selectLease = prepared<{ id: string; organizationId: string }, StoredLease>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("work")
      .leftJoin("account", "account.id", "work.account_id")
      .selectAll("work")
      .select("account.blocked_at")
      .where("work.id", "=", id)
      .where("work.organization_id", "=", organizationId),
);

/**
 * Returns work by the id of its lease, leased or not. The caller must hold it: see
 * services/runner/lease.ts.
 */
export async function findLease(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<StoredLease | undefined> {
  const [row] = await selectLease(db, { id, organizationId });
  return row;
}

const selectStopping = prepared<{ runnerId: string; organizationId: string }, { id: string }>(
  (db, { runnerId, organizationId }) =>
    db
      .selectFrom("work")
      .select("id")
      .where("leased_by", "=", runnerId)
      .where(unindexed("work.organization_id"), "=", organizationId)
      .where("stop", "=", STOP),
);

/** Returns the ids of a runner's leases whose work is to stop. */
export async function findStoppingLeases(
  db: Reader,
  { organizationId }: Scope,
  runnerId: string,
): Promise<string[]> {
  return (await selectStopping(db, { organizationId, runnerId })).map(({ id }) => id);
}

const clearLease = prepared<{ id: string; notBefore: number }, Pick<StoredWork, "organization_id" | "kind">>(
  (db, { id, notBefore }) =>
    db
      .updateTable("work")
      .set({
        leased_by: null,
        instance_id: null,
        expires_at: null,
        stop: 0,
        not_before: notBefore,
        idle_since: null,
      })
      .where("id", "=", id)
      .returning(["organization_id", "kind"]),
);

/** Returns work to the queue in its old place; its attempts and its fence are kept. */
export async function releaseWork(
  tx: WriteTransaction,
  id: Handle<"work">,
  { notBefore = 0 }: { readonly notBefore?: number } = {},
): Promise<void> {
  const [released] = await clearLease(tx.db, { id, notBefore });
  if (released) tx.touch(readyWorkOf(released.organization_id, released.kind));
}

interface InstanceLeases {
  readonly organizationId: string;
  readonly runnerId: string;
  readonly instanceId: string;
  readonly now: number;
}

const setExpired = prepared<InstanceLeases, { id: string }>(
  (db, { organizationId, runnerId, instanceId, now }) =>
    db
      .updateTable("work")
      .set({ expires_at: now })
      .where("leased_by", "=", runnerId)
      .where("instance_id", "=", instanceId)
      .where("organization_id", "=", organizationId)
      .returning("id"),
);

/**
 * Makes all leases of an instance of a runner expire now.
 * @returns their number
 */
export async function expireLeases(
  tx: WriteTransaction,
  { organizationId }: Scope,
  runnerId: string,
  instanceId: string,
): Promise<number> {
  return (await setExpired(tx.db, { organizationId, runnerId, instanceId, now: tx.now })).length;
}

const selectExpired = prepared<{ now: number; limit: number }, StoredWork>((db, { now, limit }) =>
  db
    .selectFrom("work")
    .selectAll()
    .where("leased_by", "is not", null)
    .where("expires_at", "<=", now)
    .orderBy("expires_at")
    .limit(limit),
);

/**
 * Returns up to `limit` expired leases, of all organizations. For the system, so without a scope.
 */
export async function findExpiredLeases(db: Reader, now: number, limit: number): Promise<StoredWork[]> {
  return selectExpired(db, { now, limit });
}

const setSubject = prepared<{ id: string; kind: number; subjectId: string }, { organization_id: string }>(
  (db, { id, kind, subjectId }) =>
    db
      .updateTable("work")
      .set({ kind, subject_id: subjectId })
      .where("id", "=", id)
      .returning("organization_id"),
);

/** Makes work on an agent execution, or on both, work on its environment again: for both, or on the environment alone. */
export async function turnIntoEnvironmentWork(
  tx: WriteTransaction,
  id: Handle<"work">,
  kind: WorkKind.ENVIRONMENT | WithAgentKind,
  environmentId: string,
): Promise<void> {
  const [changed] = await setSubject(tx.db, { id, kind, subjectId: environmentId });
  if (changed) tx.touch(readyWorkOf(changed.organization_id, kind));
}

const setExpiry = prepared<{ id: string; expiresAt: number }, unknown>((db, { id, expiresAt }) =>
  db.updateTable("work").set({ expires_at: expiresAt }).where("id", "=", id),
);

/** Extends a lease; the caller must have verified it. */
export async function renewLease(tx: WriteTransaction, id: Handle<"work">, expiresAt: number): Promise<void> {
  await setExpiry(tx.db, { id, expiresAt });
}

const setNotBefore = prepared<{ id: string; notBefore: number }, unknown>((db, { id, notBefore }) =>
  db.updateTable("work").set({ not_before: notBefore }).where("id", "=", id),
);

/** Keeps work in the queue unassigned until a time. */
export async function postponeWork(
  tx: WriteTransaction,
  id: Handle<"work">,
  notBefore: number,
): Promise<void> {
  await setNotBefore(tx.db, { id, notBefore });
}

const clearAttempts = prepared<{ id: string }, unknown>((db, { id }) =>
  db.updateTable("work").set({ attempt: 0 }).where("id", "=", id),
);

/** Resets the number of attempts at work, because a long attempt has made progress. */
export async function resetAttempts(tx: WriteTransaction, id: Handle<"work">): Promise<void> {
  await clearAttempts(tx.db, { id });
}
