import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { MemberTable } from "./identity-schema.ts";

/** A member in its stored form. */
export type StoredMember = MemberTable;

const selectMember = prepared<{ id: string; organizationId: string }, MemberTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("member")
      .selectAll()
      .where("id", "=", id)
      .where("organization_id", "=", organizationId)
      .where("left_at", "is", null),
);

/**
 * Returns an account's membership in the scope's organization, by its user id; undefined once it
 * left.
 */
export async function findMember(db: Reader, scope: Scope, id: string): Promise<MemberTable | undefined> {
  const [row] = await selectMember(db, { id, organizationId: scope.organizationId });
  return row;
}

/** The state of a membership that decides whether the member may act, and in which role. */
export interface MemberAtWork {
  readonly role: number;
  readonly account_id: string;
  /** Set while the account is blocked, or the member suspended. */
  readonly blocked_at: number | null;
}

const selectMemberAtWork = prepared<{ id: string; organizationId: string }, MemberAtWork>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("member")
      .innerJoin("account", "account.id", "member.account_id")
      .select((eb) => [
        "member.role",
        "member.account_id",
        eb.fn.coalesce("account.blocked_at", "member.suspended_at").as("blocked_at"),
      ])
      .where("member.id", "=", id)
      .where("member.organization_id", "=", organizationId)
      .where("member.left_at", "is", null),
);

/** Returns whether a member may act, by its user id; undefined once it left. */
export async function findMemberAtWork(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<MemberAtWork | undefined> {
  const [row] = await selectMemberAtWork(db, { id, organizationId });
  return row;
}

const selectMembership = prepared<{ id: string }, MemberTable>((db, { id }) =>
  db.selectFrom("member").selectAll().where("id", "=", id).where("left_at", "is", null),
);

/**
 * Returns a membership of any organization, by its user id; undefined once it left. Only for the
 * operator, who has no scope.
 */
export async function findMembership(db: Reader, id: string): Promise<MemberTable | undefined> {
  const [row] = await selectMembership(db, { id });
  return row;
}

/** A user as the operator's list shows it. */
export interface FoundUser {
  readonly userId: string;
  readonly organizationId: string;
  readonly organizationName: string;
  readonly name: string;
  readonly email: string;
  /** 1 administrator, 2 member. */
  readonly role: number;
  /** Set while the member is suspended there. */
  readonly suspendedAt: number | null;
  /** Set while the account is blocked. */
  readonly blockedAt: number | null;
}

/**
 * Returns the users of all organizations, oldest first, without those that left. Only for the
 * operator, who has no scope.
 */
export async function findUsers(db: Reader): Promise<FoundUser[]> {
  return builderOf(db)
    .selectFrom("member")
    .innerJoin("organization", "organization.id", "member.organization_id")
    .innerJoin("account", "account.id", "member.account_id")
    .select([
      "member.id as userId",
      "organization.id as organizationId",
      "organization.name as organizationName",
      "account.name",
      "account.email",
      "member.role",
      "member.suspended_at as suspendedAt",
      "account.blocked_at as blockedAt",
    ])
    .where("member.left_at", "is", null)
    .orderBy("member.id")
    .execute();
}

/**
 * Returns the number of administrators that are neither suspended nor blocked, leaving one member out: if it
 * is 0, that member is the organization's last administrator.
 */
export async function countOtherAdministrators(db: Reader, scope: Scope, userId: string): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("member.organization_id", "=", scope.organizationId)
    .where("member.role", "=", OrganizationRole.ADMIN)
    .where("member.left_at", "is", null)
    .where("account.blocked_at", "is", null)
    .where("member.suspended_at", "is", null)
    .where("member.id", "!=", userId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the membership of an account in the scope's organization, including one that it left. */
export async function findMemberOfAccount(
  db: Reader,
  scope: Scope,
  accountId: string,
): Promise<MemberTable | undefined> {
  return builderOf(db)
    .selectFrom("member")
    .selectAll()
    .where("organization_id", "=", scope.organizationId)
    .where("account_id", "=", accountId)
    .executeTakeFirst();
}

/** Returns the number of members of the scope's organization, without those that left. */
export async function countMembers(db: Reader, scope: Scope): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("member")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("organization_id", "=", scope.organizationId)
    .where("left_at", "is", null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Changes role, joining, leaving, suspension or the provider's id of a member. */
export async function updateMember(
  tx: WriteTransaction,
  scope: Scope,
  before: MemberTable,
  after: MemberTable,
): Promise<void> {
  const { role, created_at, left_at, suspended_at, external_id } = after;
  await builderOf(tx.db)
    .updateTable("member")
    .set({ role, created_at, left_at, suspended_at, external_id })
    .where("id", "=", before.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "member",
    id: before.id,
    kind: "updated",
    before: memberBody(before),
    after: memberBody(after),
  });
}

export async function insertMember(
  tx: WriteTransaction,
  scope: Scope,
  { id, account_id, role }: Pick<MemberTable, "id" | "account_id" | "role">,
): Promise<MemberTable> {
  const member = {
    id,
    organization_id: scope.organizationId,
    account_id,
    role,
    created_at: tx.now,
    left_at: null,
    suspended_at: null,
    external_id: null,
  };
  await builderOf(tx.db).insertInto("member").values(member).execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "member",
    id: member.id,
    kind: "created",
    after: memberBody(member),
  });
  return member;
}

function memberBody({ account_id, role, left_at, suspended_at, external_id }: MemberTable): string {
  return JSON.stringify({
    accountId: account_id,
    role,
    ...(left_at !== null && { left: true }),
    ...(suspended_at !== null && { suspended: true }),
    ...(external_id !== null && { externalId: external_id }),
  });
}
