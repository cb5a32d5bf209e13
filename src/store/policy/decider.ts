import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type { Decider } from "../../domain/policy/approval-deciders.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * Returns the administrators, the members with these user ids, and those of these groups, without suspended and
 * blocked ones.
 */
export async function findDeciders(
  db: Reader,
  scope: Scope,
  userIds: readonly string[],
  groupIds: readonly string[],
): Promise<Decider[]> {
  const grouped = await findUsersOfGroups(db, scope, groupIds);
  const rows = await activeMembers(db, scope)
    .select(["member.id as userId", "member.role"])
    .where((eb) =>
      userIds.length === 0
        ? eb("member.role", "=", OrganizationRole.ADMIN)
        : eb.or([eb("member.role", "=", OrganizationRole.ADMIN), eb("member.id", "in", userIds)]),
    )
    .execute();
  const found = new Map(rows.map(({ userId, role }) => [userId, role === OrganizationRole.ADMIN]));
  for (const userId of grouped.keys()) if (!found.has(userId)) found.set(userId, false);
  return [...found].map(([userId, isAdministrator]) => ({
    userId,
    isAdministrator,
    groupIds: grouped.get(userId) ?? [],
  }));
}

/** Returns the active users of groups, each with those of the groups that it belongs to. */
async function findUsersOfGroups(db: Reader, scope: Scope, groupIds: readonly string[]) {
  const grouped = new Map<string, string[]>();
  if (groupIds.length === 0) return grouped;
  const rows = await activeMembers(db, scope)
    .innerJoin("group_membership", "group_membership.subject_id", "member.id")
    .select(["member.id as userId", "group_membership.group_id as groupId"])
    .where("group_membership.organization_id", "=", scope.organizationId)
    .where("group_membership.group_id", "in", groupIds)
    .execute();
  for (const { userId, groupId } of rows) {
    const known = grouped.get(userId);
    if (known) known.push(groupId);
    else grouped.set(userId, [groupId]);
  }
  return grouped;
}

function activeMembers(db: Reader, { organizationId }: Scope) {
  return builderOf(db)
    .selectFrom("member")
    .innerJoin("account", "account.id", "member.account_id")
    .where("member.organization_id", "=", organizationId)
    .where("member.left_at", "is", null)
    .where("account.blocked_at", "is", null)
    .where("member.suspended_at", "is", null);
}
