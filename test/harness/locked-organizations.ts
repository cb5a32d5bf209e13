import pg from "pg";
import { lockForWrite } from "../../src/store/postgres/locks.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Change, type Lock, type Reader, type Store, SYSTEM } from "../../src/store/store.ts";
import { onCluster } from "./postgres-store.ts";
import { until } from "./until.ts";

export interface TestScope {
  readonly organizationId: string;
}

let made = 0;

/** Creates an organization whose name is its id. */
export async function makeOrganization(store: Store): Promise<TestScope> {
  made += 1;
  const id = `organization-${made}`;
  await store.write(SYSTEM, "test", async ({ db, now }) => {
    const row = { id, name: id, created_at: now, updated_at: now };
    await builderOf(db)
      .insertInto("organization")
      .values({
        ...row,
        sequence: 0,
        enterprise: 0,
        chain_hash: null,
        pruned_sequence: 0,
        invite_domains: "[]",
      })
      .execute();
  });
  return { organizationId: id };
}

/** Returns the name of an organization. */
export async function nameOf(db: Reader, { organizationId: id }: TestScope): Promise<string> {
  const { name } = await builderOf(db)
    .selectFrom("organization")
    .select("name")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return name;
}

/** Changes the name of an organization without a record. */
export async function rename(
  { db }: { readonly db: Reader },
  { organizationId: id }: TestScope,
  name: string,
): Promise<void> {
  await builderOf(db).updateTable("organization").set({ name }).where("id", "=", id).execute();
}

/** Returns a change of an organization, to be recorded. */
export const changeOf = ({ organizationId }: TestScope) =>
  ({ organizationId, type: "organization", id: organizationId, kind: "updated" }) as const satisfies Change;

/** Locks of a write that a connection of its own holds. */
export interface HeldElsewhere {
  readonly client: pg.Client;
  /** Commits what the connection has changed, which frees the locks. */
  release(): Promise<void>;
}

/** Takes the locks of a write on a connection of its own. */
export async function holdLocks(
  url: string,
  locks: readonly Lock[] | "installation",
): Promise<HeldElsewhere> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  await lockForWrite(client, locks);
  return {
    client,
    async release() {
      await client.query("commit");
      await client.end();
    },
  };
}

/** Returns the number of connections to the database that wait for a lock of the program. */
export async function countWaiting(url: string): Promise<number> {
  const { rowCount } = await onCluster(
    url,
    `select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`,
  );
  return rowCount ?? 0;
}

/** Waits until so many connections wait for a lock. */
export function untilWaiting(url: string, count: number): Promise<number> {
  return until(
    () => countWaiting(url),
    (waiting) => waiting === count,
  );
}

/** Returns the sequence numbers of an organization's rows, in their order. */
export async function sequencesOf(
  { reader }: Store,
  table: "audit_log" | "event",
  { organizationId }: TestScope,
): Promise<number[]> {
  const rows = await builderOf(reader)
    .selectFrom(table)
    .select("sequence")
    .where("organization_id", "=", organizationId)
    .orderBy("sequence")
    .execute();
  return rows.map(({ sequence }) => sequence);
}
