import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { DeviceLoginTable, SignInAttemptTable } from "./identity-schema.ts";

/** A device login in its stored form. */
export type StoredDeviceLogin = DeviceLoginTable;

/**
 * Adds a login of a device, which nobody has decided yet. It leaves no audit row, as it changes no resource; the token
 * that comes of it does.
 */
export async function insertDeviceLogin(
  tx: WriteTransaction,
  login: Omit<DeviceLoginTable, "created_at" | "polled_at" | "organization_id" | "user_id" | "denied">,
): Promise<void> {
  const undecided = { polled_at: null, organization_id: null, user_id: null, denied: 0 };
  await builderOf(tx.db)
    .insertInto("device_login")
    .values({ ...login, ...undecided, created_at: tx.now })
    .execute();
}

/**
 * Returns the numbers of logins that have not ended: of a network, of its site, and of all.
 * @param site how all networks of the site begin; undefined if the network is its own site
 */
export async function countDeviceLogins(
  db: Reader,
  network: string,
  site: string | undefined,
  now: number,
): Promise<{ readonly ofNetwork: number; readonly ofSite: number; readonly all: number }> {
  const open = builderOf(db)
    .selectFrom("device_login")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("expires_at", ">", now);
  const [ofNetwork, ofSite, all] = await Promise.all([
    open.where("network", "=", network).executeTakeFirstOrThrow(),
    open.where("network", "like", site === undefined ? network : `${site}%`).executeTakeFirstOrThrow(),
    open.executeTakeFirstOrThrow(),
  ]);
  return { ofNetwork: ofNetwork.count, ofSite: ofSite.count, all: all.count };
}

/** Returns the logins that have not ended and that nobody has decided, oldest first. */
export async function listUndecidedDeviceLogins(
  db: Reader,
  now: number,
): Promise<readonly Pick<StoredDeviceLogin, "id" | "network">[]> {
  return builderOf(db)
    .selectFrom("device_login")
    .select(["id", "network"])
    .where("expires_at", ">", now)
    .where("user_id", "is", null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** Returns the login for a device's code. */
export async function findDeviceLogin(
  db: Reader,
  deviceHash: Uint8Array,
): Promise<DeviceLoginTable | undefined> {
  return builderOf(db)
    .selectFrom("device_login")
    .selectAll()
    .where("device_hash", "=", deviceHash)
    .executeTakeFirst();
}

/** Returns the login for a typed code, while it is undecided. @param macs of the code, under each key */
export async function findUndecidedDeviceLogin(
  db: Reader,
  macs: readonly Uint8Array[],
  now: number,
): Promise<DeviceLoginTable | undefined> {
  return builderOf(db)
    .selectFrom("device_login")
    .selectAll()
    .where("user_mac", "in", macs)
    .where("expires_at", ">", now)
    .where("user_id", "is", null)
    .executeTakeFirst();
}

/** Stores that a member of the scope's organization approves or denies a device a token. */
export async function decideDeviceLogin(
  tx: WriteTransaction,
  { organizationId }: Scope,
  id: string,
  { userId, isAllowed }: { readonly userId: string; readonly isAllowed: boolean },
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("device_login")
    .set({ organization_id: organizationId, user_id: userId, denied: isAllowed ? 0 : 1 })
    .where("id", "=", id)
    .execute();
}

/** Stores that a device has polled, and when it may poll again. */
export async function updateDevicePoll(tx: WriteTransaction, id: string, interval_ms: number): Promise<void> {
  await builderOf(tx.db)
    .updateTable("device_login")
    .set({ polled_at: tx.now, interval_ms })
    .where("id", "=", id)
    .execute();
}

/** Removes a login: its codes are no longer valid. */
export async function removeDeviceLogin(tx: WriteTransaction, id: string): Promise<void> {
  await builderOf(tx.db).deleteFrom("device_login").where("id", "=", id).execute();
}

/** Denies the devices that a member of the scope's organization has approved and that have not polled since. */
export async function denyDeviceLoginsOf(
  tx: WriteTransaction,
  { organizationId }: Scope,
  userId: string,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("device_login")
    .set({ denied: 1 })
    .where("organization_id", "=", organizationId)
    .where("user_id", "=", userId)
    .execute();
}

/** Returns how many wrong codes were counted for a key, and the start of the count. */
export async function findSignInAttempts(db: Reader, key: string): Promise<SignInAttemptTable | undefined> {
  return builderOf(db).selectFrom("sign_in_attempt").selectAll().where("key", "=", key).executeTakeFirst();
}

/** Counts a wrong code. @param since milliseconds since 1970 UTC: an older count starts over */
export async function countSignInAttempt(tx: WriteTransaction, key: string, since: number): Promise<void> {
  const counted = await findSignInAttempts(tx.db, key);
  const goesOn = counted !== undefined && counted.since > since;
  const values = goesOn ? { since: counted.since, count: counted.count + 1 } : { since: tx.now, count: 1 };
  const rows = builderOf(tx.db);
  if (counted) await rows.updateTable("sign_in_attempt").set(values).where("key", "=", key).execute();
  else
    await rows
      .insertInto("sign_in_attempt")
      .values({ key, ...values })
      .execute();
}

/**
 * Removes logins of devices and counts of wrong codes that have ended before a time, in milliseconds since 1970 UTC.
 */
export async function removeEndedDeviceLogins(tx: WriteTransaction, before: number): Promise<void> {
  const rows = builderOf(tx.db);
  await rows.deleteFrom("device_login").where("expires_at", "<", before).execute();
  await rows.deleteFrom("sign_in_attempt").where("since", "<", before).execute();
}

/** Returns whether {@link removeEndedDeviceLogins} would remove anything. */
export async function hasEndedDeviceLogins(db: Reader, before: number): Promise<boolean> {
  const rows = builderOf(db);
  const [login, attempt] = await Promise.all([
    rows.selectFrom("device_login").select("id").where("expires_at", "<", before).limit(1).executeTakeFirst(),
    rows.selectFrom("sign_in_attempt").select("key").where("since", "<", before).limit(1).executeTakeFirst(),
  ]);
  return login !== undefined || attempt !== undefined;
}
