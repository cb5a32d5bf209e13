import { WorkKind, WorkKindSchema } from "#gen/runner/v1/work_pb.js";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import { readyWorkOf, type StoredWork } from "./work.ts";

/** A runner that asks for work, and the work that it accepts. */
export interface Claimant extends Scope {
  /**
   * Ids that work may be bound to: the runner's own, and for a local runner also that of the local
   * configuration.
   */
  readonly runnerIds: readonly [own: string, local?: string];
  /** WorkKinds by number; empty for every kind. */
  readonly kinds: readonly number[];
  /** Ids of the classes that it serves; work without a class always fits. */
  readonly environmentClassIds: readonly string[];
}

const EVERY_KIND = WorkKindSchema.values
  .map(({ number }) => number)
  .filter((kind) => kind !== WorkKind.UNSPECIFIED);

interface NextOfKind {
  readonly organizationId: string;
  readonly kind: number;
  readonly runnerId: string;
  readonly otherRunnerId: string;
  readonly now: number;
}

function nextOfKind(db: Reader, { organizationId, kind, runnerId, otherRunnerId, now }: NextOfKind) {
  return (
    builderOf(db)
      .selectFrom("work")
      .selectAll()
      .where("organization_id", "=", organizationId)
      .where("kind", "=", kind)
      .where("leased_by", "is", null)
      .where("not_before", "<=", now)
      .where((eb) => eb.or([eb("runner_id", "is", null), eb("runner_id", "in", [runnerId, otherRunnerId])]))
      .orderBy("turn")
      // One order of the groups within every turn: with that of arrival, one could be served twice
      // before another.
      .orderBy("group_id")
      .orderBy("id")
      .limit(1)
  );
}

const selectNext = prepared<NextOfKind, StoredWork>((db, next) =>
  nextOfKind(db, next).where("environment_class_id", "is", null),
);

const selectNextOfClass = prepared<NextOfKind & { environmentClassId: string }, StoredWork>((db, next) =>
  nextOfKind(db, next).where("environment_class_id", "=", next.environmentClassId),
);

/**
 * Returns the work whose turn it is among the work that a runner accepts at `now`; for reads as for
 * writes. Each kind and class is looked up separately: none of the work that the runner does not
 * accept is read, however much there is.
 */
export async function findClaimable(
  db: Reader,
  { organizationId, runnerIds, kinds, environmentClassIds }: Claimant,
  now: number,
): Promise<StoredWork | undefined> {
  const [runnerId = "", otherRunnerId = runnerId] = runnerIds;
  let first: StoredWork | undefined;
  for (const kind of kinds.length > 0 ? kinds : EVERY_KIND) {
    const next = { organizationId, kind, runnerId, otherRunnerId, now };
    const found = await selectNext(db, next);
    for (const environmentClassId of environmentClassIds) {
      found.push(...(await selectNextOfClass(db, { ...next, environmentClassId })));
    }
    for (const work of found) if (!first || comesBefore(work, first)) first = work;
  }
  return first;
}

function comesBefore(one: StoredWork, other: StoredWork): boolean {
  if (one.turn !== other.turn) return one.turn < other.turn;
  return one.group_id === other.group_id ? one.id < other.id : one.group_id < other.group_id;
}

const setLease = prepared<{ id: string; runnerId: string; expiresAt: number }, StoredWork>(
  (db, { id, runnerId, expiresAt }) =>
    db
      .updateTable("work")
      .set((eb) => ({
        leased_by: runnerId,
        expires_at: expiresAt,
        attempt: eb("attempt", "+", 1),
        fence: eb("fence", "+", 1),
      }))
      .where("id", "=", id)
      .where("leased_by", "is", null)
      .returningAll(),
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

/** Leases work that nobody holds to a runner, under the next fence. */
export async function claimWork(
  tx: WriteTransaction,
  work: Pick<StoredWork, "id" | "organization_id" | "turn">,
  { runnerId, leaseMs }: { readonly runnerId: string; readonly leaseMs: number },
): Promise<StoredWork> {
  const [leased] = await setLease(tx.db, { id: work.id, runnerId, expiresAt: tx.now + leaseMs });
  if (!leased) throw new Error(`the work ${work.id} is leased already`);
  await setTurn(tx.db, { organizationId: work.organization_id, turn: work.turn });
  return leased;
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

const clearLease = prepared<{ id: string; notBefore: number }, { organization_id: string }>(
  (db, { id, notBefore }) =>
    db
      .updateTable("work")
      .set({ leased_by: null, expires_at: null, stop: 0, not_before: notBefore })
      .where("id", "=", id)
      .returning("organization_id"),
);

/** Returns work to the queue in its old place; its attempts and its fence are kept. */
export async function releaseWork(
  tx: WriteTransaction,
  id: Handle<"work">,
  { notBefore = 0 }: { readonly notBefore?: number } = {},
): Promise<void> {
  const [released] = await clearLease(tx.db, { id, notBefore });
  if (released) tx.touch(readyWorkOf(released.organization_id));
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

const setRunner = prepared<{ id: string; runnerId: string }, unknown>((db, { id, runnerId }) =>
  db.updateTable("work").set({ runner_id: runnerId }).where("id", "=", id),
);

/** Binds work to one runner from now on, also after it is returned to the queue. */
export async function bindWork(tx: WriteTransaction, id: Handle<"work">, runnerId: string): Promise<void> {
  await setRunner(tx.db, { id, runnerId });
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

/** Leaves work in the queue that is not handed out before an instant. */
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
