import { Principal } from "#gen/service/v1/identity_pb.js";
import {
  isGroupName,
  MAX_GROUP_MEMBERS,
  MAX_GROUPS,
  newGroup,
} from "../../../domain/identity/group/group.ts";
import { fold } from "../../../domain/text/fold.ts";
import { GROUPS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import { countGroups, type FoundGroup, findGroupByName, insertGroup } from "../../../store/identity/group.ts";
import {
  findMembershipsOf,
  insertMembership,
  removeGroupMembership,
} from "../../../store/identity/group-membership.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";

/**
 * Sets the group memberships of a user according to an identity provider's claims. Memberships that people or another
 * provider added remain. A missing group is created and managed by the provider.
 * @param provider short stable name of the provider, such as `oidc:corporate`
 * @param groupNames every group in the user's current claims; letter case is ignored
 * @returns the names that cannot be group names, or that exceed a limit; the others are set
 */
export async function setProviderMemberships(
  tx: WriteTransaction,
  scope: Scope,
  userId: string,
  provider: string,
  groupNames: readonly string[],
): Promise<{ readonly unusable: string[] }> {
  const unusable: string[] = [];
  const groups = new Map<string, FoundGroup>();
  for (const name of new Map(groupNames.map((each) => [fold(each), each])).values()) {
    const group = await findOrMakeGroup(tx, scope, provider, name);
    if (group) groups.set(group.id, group);
    else unusable.push(name);
  }
  const held = await findMembershipsOf(tx.db, scope, userId);
  for (const membership of held)
    if (membership.provider === provider && !groups.has(membership.group_id))
      await removeGroupMembership(tx, scope, membership);
  for (const group of groups.values()) {
    if (held.some(({ group_id }) => group_id === group.id)) continue;
    if (group.memberCount >= MAX_GROUP_MEMBERS) unusable.push(group.name);
    else {
      const subject = { id: userId, principal: Principal.USER };
      await insertMembership(tx, scope, group, subject, provider);
    }
  }
  return { unusable };
}

async function findOrMakeGroup(
  tx: WriteTransaction,
  scope: Scope,
  provider: string,
  name: string,
): Promise<FoundGroup | undefined> {
  if (!isGroupName(name) || !mayStore(tx, GROUPS_LEVEL)) return undefined;
  const found = await findGroupByName(tx.db, scope, name);
  if (found) return found;
  if ((await countGroups(tx.db, scope)) >= MAX_GROUPS) return undefined;
  const context = { id: tx.newId(), organizationId: scope.organizationId, isManaged: true, now: tx.now };
  return insertGroup(tx, scope, newGroup({ ...context, name, description: "" }), provider);
}
