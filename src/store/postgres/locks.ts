import { createHash } from "node:crypto";
import type pg from "pg";
import type { Lock } from "../store.ts";

/**
 * The advisory locks of the program. The engine keeps locks with two numbers apart from those with one, so a lock of
 * the installation or of jobs never collides with one of an organization.
 */
const INSTALLATION = {
  space: 0x43_48_41_52,
  installation: 1,
  migration: 2,
  presence: 3,
  jobs: 4,
  jobWrites: 5,
  /** The lock of data that belongs to no organization. */
  common: 6,
} as const;

/** Locks of the feature levels, each held by the servers of that level. */
const LEVELS = 0x43_48_4c_56;

/** Interval between attempts to take the lock of migrations, in milliseconds. */
const MIGRATION_CHECK_MS = 200;

/** The locks of one transaction. */
export type LockSet = readonly Lock[] | "installation";

/** The error of a write that found, by reading under its locks, that it needs more locks. */
export class LocksGrew extends Error {
  readonly missing: readonly Lock[];

  constructor(missing: readonly Lock[]) {
    super("a write needs more locks than it has");
    this.missing = missing;
  }
}

/** The key for data that belongs to no organization; it differs from every organization's key. */
const COMMON = "common";

/**
 * Returns the key of an organization's lock: 64 bits of a hash of its id. Two organizations with the same key share a
 * lock.
 */
function organizationKey(organizationId: string): string {
  return createHash("sha256").update(organizationId).digest().readBigInt64BE().toString();
}

/** Returns the keys of a write's locks, without duplicates, in the order in which they are taken. */
export function keysOf(locks: LockSet): string[] {
  if (locks === "installation") return ["installation"];
  const organizations = locks.filter((lock) => lock !== null).map(organizationKey);
  return [...new Set(organizations.sort()), ...(locks.includes(null) ? [COMMON] : [])];
}

/**
 * Takes the locks of a write: either the lock of the installation alone, or a shared lock of the installation followed
 * by those of its keys, in order. It is the transaction's first statement and reads no row before it has the locks, so
 * that the next statement sees what the previous holder committed.
 * @param waitMs time to wait for each lock; by default that of the connection, which also applies to later statements
 * @returns the feature level of the data, which cannot be raised while these locks are held
 */
export async function lockForWrite(client: pg.ClientBase, locks: LockSet, waitMs?: number): Promise<number> {
  const { space, installation, common } = INSTALLATION;
  const isWhole = locks === "installation";
  const limited = (parameter: string, lock: string) =>
    `case when set_config('lock_timeout', ${parameter}::text, true) is not null then ${lock} end`;
  const taken = isWhole
    ? limited("$1", `pg_advisory_xact_lock(${space}, ${installation})`)
    : `count(case key
        when 'shared' then ${limited("$2", `pg_advisory_xact_lock_shared(${space}, ${installation})`)}
        when '${COMMON}' then pg_advisory_xact_lock(${space}, ${common})
        else pg_advisory_xact_lock(key::bigint)
      end) from unnest($1::text[]) as key`;
  const limit = waitMs === undefined ? null : String(waitMs);
  const { rows } = await client.query<{ level: number }>({
    name: isWhole ? "lock-installation" : "lock-organizations",
    // What follows the locks is called when their row is there: the limit ends with them, and the function sees more
    // than its statement.
    text: `with locked as materialized (select ${taken})
      select current_feature_level() as level from locked where set_config('lock_timeout', null, true) is not null`,
    values: isWhole ? [limit] : [["shared", ...keysOf(locks)], limit],
  });
  return rows[0]?.level ?? 0;
}

/**
 * Takes the lock of the installation for the transaction, at a time when the tables may not yet hold a feature level.
 */
export async function lockInstallation(client: pg.ClientBase): Promise<void> {
  await client.query("select pg_advisory_xact_lock($1::int, $2::int)", [
    INSTALLATION.space,
    INSTALLATION.installation,
  ]);
}

/**
 * Takes the lock under which migrations run, for the session. It polls instead of blocking: to build an index, the
 * engine waits for every earlier statement to end, which would include one that waits for this lock.
 */
export async function lockForMigration(client: pg.ClientBase): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>(
      "select pg_try_advisory_lock($1::int, $2::int) as held",
      [INSTALLATION.space, INSTALLATION.migration],
    );
    if (rows[0]?.held) return;
    await new Promise((resolve) => setTimeout(resolve, MIGRATION_CHECK_MS));
  }
}

export async function unlockMigration(client: pg.ClientBase): Promise<void> {
  await client.query("select pg_advisory_unlock($1::int, $2::int)", [
    INSTALLATION.space,
    INSTALLATION.migration,
  ]);
}

/** How a process uses the database: as one of the servers, as the only process, or alongside the servers. */
export type Presence = "server" | "alone" | "alongside";

/** The error of a process whose presence conflicts with that of another process. */
export class PresenceRefused extends Error {
  override readonly name = "PresenceRefused";
}

/** Holds the presence of a process for the session. @throws PresenceRefused */
export async function holdPresence(client: pg.ClientBase, presence: Presence): Promise<void> {
  if (presence === "alongside") return;
  const lock = presence === "alone" ? "pg_try_advisory_lock" : "pg_try_advisory_lock_shared";
  const { rows } = await client.query<{ held: boolean }>(`select ${lock}($1::int, $2::int) as held`, [
    INSTALLATION.space,
    INSTALLATION.presence,
  ]);
  if (rows[0]?.held) return;
  throw new PresenceRefused(
    presence === "alone"
      ? "a server or another command uses the database"
      : "a command that needs all servers stopped uses the database: start the server when it has ended",
  );
}

/** Holds the lock of a server's feature level for the session; it waits while the level is being raised. */
export async function holdLevel(client: pg.ClientBase, level: number): Promise<void> {
  await client.query("select pg_advisory_lock_shared($1::int, $2::int)", [LEVELS, level]);
}

/**
 * Excludes servers of a feature level for the transaction: none runs, and one that starts waits.
 * @returns false while one runs
 */
export async function excludeLevel(client: pg.ClientBase, level: number): Promise<boolean> {
  const { rows } = await client.query<{ held: boolean }>(
    "select pg_try_advisory_xact_lock($1::int, $2::int) as held",
    [LEVELS, level],
  );
  return rows[0]?.held ?? false;
}

/**
 * Takes the lock of the process that runs the jobs, for the session.
 * @returns false while another process has it, or while a job's write of the previous holder still runs
 */
export async function tryBecomeLeader(client: pg.ClientBase): Promise<boolean> {
  const { space, jobs, jobWrites } = INSTALLATION;
  const { rows } = await client.query<{ held: boolean }>({
    name: "lead",
    text: "select pg_try_advisory_lock($1::int, $2::int) as held",
    values: [space, jobs],
  });
  if (!rows[0]?.held) return false;
  const ended = await client.query<{ ended: boolean }>({
    name: "lead-alone",
    text: "select pg_try_advisory_xact_lock($1::int, $2::int) as ended",
    values: [space, jobWrites],
  });
  return ended.rows[0]?.ended ?? false;
}

/**
 * Returns whether the session of a process still holds the lock of the jobs. It is called in the transaction of a
 * job's write, after its locks were taken. A process that was suspended long enough to lose the lead therefore writes
 * nothing, and no other process becomes leader until this transaction has ended.
 */
export async function isStillLeader(client: pg.ClientBase, processId: number): Promise<boolean> {
  const { space, jobs, jobWrites } = INSTALLATION;
  await client.query({
    name: "begin-job-write",
    text: "select pg_advisory_xact_lock_shared($1::int, $2::int)",
    values: [space, jobWrites],
  });
  const { rows } = await client.query<{ held: boolean }>({
    name: "still-leads",
    text: `select exists (
      select from pg_locks where locktype = 'advisory' and granted and pid = $3::int
        and classid = $1::oid and objid = $2::oid and objsubid = 2
        and database = (select oid from pg_database where datname = current_database())
    ) as held`,
    values: [space, jobs, processId],
  });
  return rows[0]?.held ?? false;
}
