import { createHash } from "node:crypto";
import type pg from "pg";

/**
 * The advisory locks of the program. Those with two numbers and those with one are different to the engine, so that
 * the locks of the installation and of jobs can never be those of an organization.
 */
const INSTALLATION = {
  space: 0x43_48_41_52,
  installation: 1,
  migration: 2,
  presence: 3,
  jobs: 4,
  jobWrites: 5,
} as const;

/** Organizations that a write locks, or all of them with what belongs to none. */
export type LockSet = readonly string[] | "installation";

/** Returns the key of an organization's lock: 64 bits of a hash of its id. Two with one key wait for each other. */
export function organizationKey(organizationId: string): string {
  return createHash("sha256").update(organizationId).digest().readBigInt64BE().toString();
}

/**
 * Takes the locks of a write, in the order of their keys: those of organizations, with a shared one of the
 * installation, or that of the installation alone. It is the transaction's first statement and reads nothing, so that
 * the next one sees what the holder before has committed.
 */
export async function lockForWrite(client: pg.PoolClient, locks: LockSet): Promise<void> {
  const { space, installation } = INSTALLATION;
  if (locks === "installation") {
    await client.query({
      name: "lock-installation",
      text: "select pg_advisory_xact_lock($1::int, $2::int)",
      values: [space, installation],
    });
    return;
  }
  const keys = [...new Set(locks.map(organizationKey))].sort();
  await client.query({
    name: "lock-organizations",
    text: `select pg_advisory_xact_lock_shared($1::int, $2::int), count(pg_advisory_xact_lock(key)) from unnest($3::bigint[]) as key`,
    values: [space, installation, keys],
  });
}

/** Takes the lock under which migrations run, and the first start makes an organization, for the session. */
export async function lockForMigration(client: pg.ClientBase): Promise<void> {
  await client.query("select pg_advisory_lock($1::int, $2::int)", [
    INSTALLATION.space,
    INSTALLATION.migration,
  ]);
}

export async function unlockMigration(client: pg.ClientBase): Promise<void> {
  await client.query("select pg_advisory_unlock($1::int, $2::int)", [
    INSTALLATION.space,
    INSTALLATION.migration,
  ]);
}

/** The presence of a process at the database: as one of the servers, as the only process, or next to the servers. */
export type Presence = "server" | "alone" | "beside";

/** The error of a process that cannot be there as it asks, because of others. */
export class PresenceRefused extends Error {
  override readonly name = "PresenceRefused";
}

/** Holds the presence of a process for the session. @throws PresenceRefused */
export async function holdPresence(client: pg.ClientBase, presence: Presence): Promise<void> {
  if (presence === "beside") return;
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

/**
 * Takes the lock of the process that runs the jobs, for the session.
 * @returns false while another has it, or while a job's write of the one before goes on
 */
export async function tryToLead(client: pg.ClientBase): Promise<boolean> {
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
 * Returns whether the session of a process still holds the lock of the jobs. Asked in the transaction of a job's
 * write, after its locks were taken: a process that stood still for so long that another leads writes nothing, and
 * another leads only when this transaction has ended.
 */
export async function stillLeads(client: pg.PoolClient, processId: number): Promise<boolean> {
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
