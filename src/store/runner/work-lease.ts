import type { Compilable } from "kysely";
import { WorkKind, WorkKindSchema } from "#gen/runner/v1/work_pb.js";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import { AGENT_WITH_ENVIRONMENT, readyWorkOf, type StoredWork } from "./work.ts";

/** A runner that asks for work, and the work that it accepts. */
export interface Claimant extends Scope {
  /**
   * Ids that work may be bound to: the runner's own, and for a local runner also that of the local
   * configuration.
   */
  readonly runnerIds: readonly [own: string, local?: string];
  /** WorkKinds by number; empty for every kind. */
  readonly kinds: readonly number[];
  /** Whether it takes agent executions together with their new environments; false when absent. */
  readonly agentsWithEnvironment?: boolean;
  /** Ids of the classes that it serves; work without a class always fits. */
  readonly environmentClassIds: readonly string[];
}

const EVERY_KIND = WorkKindSchema.values
  .map(({ number }) => number)
  .filter((kind) => kind !== WorkKind.UNSPECIFIED);

/** The kinds and classes of one query; more are looked up in several. SQLite takes up to 500. */
const MAX_PAIRS = 60;

interface NextWork {
  readonly organizationId: string;
  readonly runnerId: string;
  readonly otherRunnerId: string;
  readonly now: number;
  readonly limit: number;
  readonly kinds: readonly number[];
  /** Null is for work without a class. */
  readonly classIds: readonly (string | null)[];
}

/** The values of a query by its parameters, `kind0` and `class0` being the first of each. */
type NextValues = Omit<NextWork, "kinds" | "classIds"> & Readonly<Record<string, unknown>>;

/**
 * Returns the next work of each of so many kinds and classes in one query. Each pair is found by the
 * index alone: none of the work that the runner does not accept is read, however much there is.
 */
function nextOfPairs(kindCount: number, classCount: number, withoutClass: boolean) {
  return prepared<NextValues, StoredWork>((db, values) => {
    const ofPair = (kind: string, classId: string | undefined) => {
      const ready = db
        .selectFrom("work")
        .selectAll()
        .where("organization_id", "=", values.organizationId)
        .where("kind", "=", values[kind] as number)
        .where("leased_by", "is", null)
        .where("not_before", "<=", values.now)
        .where((eb) =>
          eb.or([
            eb("runner_id", "is", null),
            eb("runner_id", "in", [values.runnerId, values.otherRunnerId]),
          ]),
        );
      const ofClass =
        classId === undefined
          ? ready.where("environment_class_id", "is", null)
          : ready.where("environment_class_id", "=", values[classId] as string);
      // One order of the groups within every turn: with that of arrival, one could be served twice
      // before another.
      const next = ofClass.orderBy("turn").orderBy("group_id").orderBy("id").limit(values.limit);
      return db.selectFrom(next.as("next")).selectAll();
    };
    const classes = Array.from({ length: classCount }, (_, index) => `class${index}`);
    const pairs = Array.from({ length: kindCount }, (_, index) => `kind${index}`).flatMap((kind) =>
      [...(withoutClass ? [undefined] : []), ...classes].map((classId) => ofPair(kind, classId)),
    );
    return pairs.reduce((all, pair) => all.unionAll(pair)) as Compilable<StoredWork>;
  });
}

const queries = new Map<string, ReturnType<typeof nextOfPairs>>();

async function selectNext(db: Reader, next: NextWork): Promise<StoredWork[]> {
  const { kinds, classIds, ...values } = next;
  const named = classIds.filter((id) => id !== null);
  const withoutClass = named.length < classIds.length;
  const shape = `${kinds.length} ${named.length} ${withoutClass}`;
  const query = queries.get(shape) ?? nextOfPairs(kinds.length, named.length, withoutClass);
  queries.set(shape, query);
  return query(db, {
    ...values,
    ...Object.fromEntries(kinds.map((kind, index) => [`kind${index}`, kind])),
    ...Object.fromEntries(named.map((id, index) => [`class${index}`, id])),
  });
}

/** Returns the kinds of rows that a runner accepts. */
export function kindsFor({
  kinds,
  agentsWithEnvironment = false,
}: Pick<Claimant, "kinds" | "agentsWithEnvironment">): readonly number[] {
  const asked = kinds.length > 0 ? [...new Set(kinds)] : EVERY_KIND;
  const leasedAs = agentsWithEnvironment ? WorkKind.AGENT : WorkKind.ENVIRONMENT;
  return asked.includes(leasedAs) ? [...asked, AGENT_WITH_ENVIRONMENT] : asked;
}

/**
 * Returns up to `limit` pieces of work that a runner accepts at `now`, in the order of their turns; for
 * reads as for writes.
 */
export async function findClaimable(
  db: Reader,
  claimant: Claimant,
  now: number,
  limit: number,
): Promise<StoredWork[]> {
  const { organizationId, runnerIds, environmentClassIds } = claimant;
  const [runnerId = "", otherRunnerId = runnerId] = runnerIds;
  const wanted = kindsFor(claimant);
  const classIds = [null, ...environmentClassIds];
  const classesPerQuery = Math.floor(MAX_PAIRS / wanted.length);
  const found: StoredWork[] = [];
  for (let at = 0; at < classIds.length; at += classesPerQuery) {
    const some = classIds.slice(at, at + classesPerQuery);
    const next = { organizationId, runnerId, otherRunnerId, now, limit, kinds: wanted, classIds: some };
    found.push(...(await selectNext(db, next)));
  }
  return found.sort(byTurn).slice(0, limit);
}

function byTurn(one: StoredWork, other: StoredWork): number {
  if (one.turn !== other.turn) return one.turn - other.turn;
  if (one.group_id !== other.group_id) return one.group_id < other.group_id ? -1 : 1;
  return one.id < other.id ? -1 : 1;
}

interface NewLease extends LeasedSubject {
  readonly id: string;
  readonly leasedBy: string;
  readonly expiresAt: number;
}

const setLease = prepared<NewLease, StoredWork>(
  (db, { id, kind, subject_id, runner_id, leasedBy, expiresAt }) =>
    db
      .updateTable("work")
      .set((eb) => ({
        kind,
        subject_id,
        runner_id,
        leased_by: leasedBy,
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

/** The columns of work that a lease may change: what the work is from then on, and which runner alone can do it. */
export type LeasedSubject = Pick<StoredWork, "kind" | "subject_id" | "runner_id">;

interface ClaimOptions {
  readonly runnerId: string;
  readonly leaseMs: number;
  /** Left out when the work stays what it is. */
  readonly leasedAs?: LeasedSubject | undefined;
}

/** Leases work that nobody holds to a runner, under the next fence. */
export async function claimWork(
  tx: WriteTransaction,
  { id, organization_id, turn, ...work }: StoredWork,
  { runnerId, leaseMs, leasedAs = work }: ClaimOptions,
): Promise<StoredWork> {
  const { kind, subject_id, runner_id } = leasedAs;
  const expiresAt = tx.now + leaseMs;
  const [leased] = await setLease(tx.db, { id, kind, subject_id, runner_id, leasedBy: runnerId, expiresAt });
  if (!leased) throw new Error(`the work ${id} is leased already`);
  await setTurn(tx.db, { organizationId: organization_id, turn });
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

const clearLease = prepared<{ id: string; notBefore: number }, Pick<StoredWork, "organization_id" | "kind">>(
  (db, { id, notBefore }) =>
    db
      .updateTable("work")
      .set({ leased_by: null, expires_at: null, stop: 0, not_before: notBefore })
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
  kind: WorkKind.ENVIRONMENT | typeof AGENT_WITH_ENVIRONMENT,
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
