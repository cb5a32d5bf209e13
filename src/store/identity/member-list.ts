import type { ExpressionBuilder } from "kysely";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import type { MemberFacts, MemberOrder } from "../../domain/identity/member.ts";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import { checkDeadline, contains } from "../expressions.ts";
import { countRows, firstRows, type RowOrder } from "../first-rows.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";
import type { AccountTable, MemberTable } from "./identity-schema.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface MemberFilter {
  /** At least one; statuses that members cannot have match nothing. */
  readonly statuses: readonly UserStatus[];
  readonly roles: readonly number[];
  readonly userIds: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
}

/** Returns up to `limit` members after `after`; the descending order is exactly mirrored. */
export async function findMemberPage(
  db: Reader,
  scope: Scope,
  filter: MemberFilter,
  { field, direction }: MemberOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<MemberFacts>[]> {
  const key = field === "name" ? "account.name_folded" : "member.created_at";
  const last = after && [field === "name" ? await findFoldedName(db, scope, after.id) : after.key, after.id];
  const own = membersOf(db, scope);
  const rows = await firstRows(
    own,
    matching(own, filter).select(FACTS),
    { columns: [key, "member.id"], direction, after: last },
    limit,
  );
  return rows.map((member) => ({
    position: { key: field === "name" ? 0 : member.joinedAt, id: member.userId },
    bytes: MEMBER_BYTES + MAX_BYTES_PER_UNIT * (member.name.length + member.email.length),
    read: () => member,
  }));
}

const FACTS = [
  "member.id as userId",
  "member.role",
  "member.created_at as joinedAt",
  "member.left_at as leftAt",
  "member.suspended_at as suspendedAt",
  "account.name",
  "account.email",
  "account.blocked_at as blockedAt",
] as const;

/** Returns a member of the scope's organization by its user id, including one that left. */
export async function findMemberFacts(
  db: Reader,
  scope: Scope,
  userId: string,
): Promise<MemberFacts | undefined> {
  return membersOf(db, scope).select(FACTS).where("member.id", "=", userId).executeTakeFirst();
}

/** Bytes of a member in JSON besides its name and address: ids, times and the names of fields. */
const MEMBER_BYTES = 512;

/** Maximum bytes per unit of text in JSON, where control characters are escaped. */
const MAX_BYTES_PER_UNIT = 6;

/** Returns the number of matching members, counted up to `limit`. */
export async function countMatchingMembers(
  db: Reader,
  scope: Scope,
  filter: MemberFilter,
  limit: number,
): Promise<number> {
  const own = membersOf(db, scope);
  const order: RowOrder = { columns: ["member.created_at", "member.id"], direction: "asc" };
  return countRows(db, own, matching(own, filter), order, limit);
}

/** Returns a member and its account as a list shows them. */
export function memberFacts(member: MemberTable, account: AccountTable): MemberFacts {
  return {
    userId: member.id,
    role: member.role,
    joinedAt: member.created_at,
    leftAt: member.left_at,
    suspendedAt: member.suspended_at,
    name: account.name,
    email: account.email,
    blockedAt: account.blocked_at,
  };
}

/**
 * Returns the name that ended a page. A token holds only its id; the row stays even if the member
 * has left since.
 */
async function findFoldedName(db: Reader, scope: Scope, userId: string): Promise<string> {
  const { name_folded } = await builderOf(db)
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .select("account.name_folded")
    .where(checkDeadline())
    .where("member.id", "=", userId)
    .where("member.organization_id", "=", scope.organizationId)
    .executeTakeFirstOrThrow();
  return name_folded;
}

function membersOf(db: Reader, scope: Scope) {
  return builderOf(db)
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .where(checkDeadline())
    .where("member.organization_id", "=", scope.organizationId);
}

function matching(own: ReturnType<typeof membersOf>, filter: MemberFilter) {
  let query = own.where((eb) => eb.or(filter.statuses.map((status) => hasStatus(eb, status))));
  if (filter.roles.length > 0) query = query.where("member.role", "in", filter.roles);
  if (filter.userIds.length > 0) query = query.where("member.id", "in", filter.userIds);
  const { search } = filter;
  if (search === "") return query;
  return query.where((eb) => eb.or([matchesSearch("account", search), contains("member.id", search)]));
}

/**
 * Returns the condition for a status as domain/identity/member.ts defines it: a member who left has
 * that status whether or not the account is blocked.
 */
function hasStatus(eb: ExpressionBuilder<Schema, "member" | "account">, status: UserStatus) {
  if (status === UserStatus.LEFT) return eb("member.left_at", "is not", null);
  if (status !== UserStatus.ACTIVE && status !== UserStatus.SUSPENDED) return eb.lit(false);
  const each = ["account.blocked_at", "member.suspended_at"] as const;
  const access =
    status === UserStatus.ACTIVE
      ? eb.and(each.map((column) => eb(column, "is", null)))
      : eb.or(each.map((column) => eb(column, "is not", null)));
  return eb.and([eb("member.left_at", "is", null), access]);
}
