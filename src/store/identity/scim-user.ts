import type { ScimUser } from "../../domain/identity/scim/scim-user.ts";
import { fold } from "../../domain/text/fold.ts";
import { contains } from "../expressions.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** The condition of a list; undefined means any. */
export interface ScimUserFilter {
  /** Folded address. */
  readonly userName?: string | undefined;
  readonly externalId?: string | undefined;
  /** True to list those that left instead. */
  readonly hasLeft?: boolean;
}

/**
 * Returns up to `count` members of the scope's organization behind the first `offset`, by id, without those that left
 * unless the filter is for them, and the number of all that match.
 */
export async function findScimUserPage(
  db: Reader,
  scope: Scope,
  filter: ScimUserFilter,
  offset: number,
  count: number,
): Promise<{ readonly users: ScimUser[]; readonly total: number }> {
  const { userName } = filter;
  if (userName === "") return { users: [], total: 0 };
  if (userName !== undefined) {
    const like = await usersOf(db, scope, filter).select(COLUMNS).orderBy("member.id").execute();
    const users = like.map(toScimUser).filter((user) => fold(user.userName) === userName);
    return { users: users.slice(offset, offset + count), total: users.length };
  }
  const rows = await usersOf(db, scope, filter)
    .select(COLUMNS)
    .orderBy("member.id")
    .offset(offset)
    .limit(count)
    .execute();
  const { total } = await usersOf(db, scope, filter)
    .select((eb) => eb.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { users: rows.map(toScimUser), total };
}

/** Returns a member of the scope's organization by its user id. */
export async function findScimUser(db: Reader, scope: Scope, id: string): Promise<ScimUser | undefined> {
  const row = await usersOf(db, scope, {}).select(COLUMNS).where("member.id", "=", id).executeTakeFirst();
  return row && toScimUser(row);
}

const COLUMNS = [
  "member.id",
  "account.email as userName",
  "account.name",
  "account.blocked_at as blockedAt",
  "member.suspended_at as suspendedAt",
  "member.external_id as externalId",
  "member.created_at as createdAt",
] as const;

interface UserRow extends Omit<ScimUser, "active" | "externalId"> {
  readonly blockedAt: number | null;
  readonly suspendedAt: number | null;
  readonly externalId: string | null;
}

function toScimUser({ blockedAt, suspendedAt, externalId, ...row }: UserRow): ScimUser {
  return { ...row, active: suspendedAt === null && blockedAt === null, externalId: externalId ?? "" };
}

function usersOf(
  db: Reader,
  { organizationId }: Scope,
  { userName, externalId, hasLeft = false }: ScimUserFilter,
) {
  let query = builderOf(db)
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .where("member.organization_id", "=", organizationId)
    .where("member.left_at", hasLeft ? "is not" : "is", null);
  // The text has the address on its last line; the whole of it is compared afterwards.
  if (userName !== undefined) query = query.where(contains("account.search_text", `\n${userName}`));
  if (externalId !== undefined) query = query.where("member.external_id", "=", externalId);
  return query;
}
