import type { Kysely } from "kysely";
import type { MemberFacts } from "../domain/member.ts";
import type { AccountTable, MemberTable, Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

/**
 * Every member that the scope's organization has or had. Names are compared
 * without regard to case, which the database cannot do, and an organization has
 * no more members than people, so lists are filtered and ordered from here.
 */
export async function findMembers(db: Kysely<Schema>, scope: Scope): Promise<MemberFacts[]> {
  return db
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .select([
      "member.id as userId",
      "member.role",
      "member.created_at as joinedAt",
      "member.left_at as leftAt",
      "account.name",
      "account.email",
      "account.blocked_at as blockedAt",
    ])
    .where("member.organization_id", "=", scope.organizationId)
    .execute();
}

/** A member and its account as a list would show them. */
export function memberFacts(member: MemberTable, account: AccountTable): MemberFacts {
  return {
    userId: member.id,
    role: member.role,
    joinedAt: member.created_at,
    leftAt: member.left_at,
    name: account.name,
    email: account.email,
    blockedAt: account.blocked_at,
  };
}
