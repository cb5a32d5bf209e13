import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  newGroup,
  requireGroupsKnown,
  requireNameFree,
  requireRoomForGroup,
  requireRoomForMembers,
  updatedGroup,
} from "../../../domain/identity/group/group.ts";
import {
  fittingGroups,
  patchedGroupValues,
  requireUserOfOrganization,
  type ScimGroup,
  type ScimGroupValues,
  scimGroupValues,
} from "../../../domain/identity/scim/scim-group.ts";
import { patchChanges, type ScimFilter } from "../../../domain/identity/scim/scim-json.ts";
import { GROUPS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import {
  countGroups,
  findGroupByName,
  findProvisionedGroups,
  insertGroup,
  type ProvisionedGroup,
  removeGroup,
  SCIM_PROVIDER,
  setGroupExternalId,
  updateGroup,
} from "../../../store/identity/group.ts";
import {
  findMembershipsOfGroup,
  insertMemberships,
  removeOtherMemberships,
} from "../../../store/identity/group-membership.ts";
import { findMember } from "../../../store/identity/member.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { type ScimDependencies, writeAsProvisioner } from "./provisioner.ts";

/** Returns a page of the groups that SCIM provisions, and their total number. */
export async function listScimGroups(
  { store }: ScimDependencies,
  caller: Caller,
  filter: ScimFilter | undefined,
  offset: number,
  count: number,
  withMembers: boolean,
) {
  const db = store.reader;
  const { attribute, value = "" } = filter ?? {};
  const condition = {
    ...(attribute === "id" && { id: value.toLowerCase() }),
    ...(attribute === "displayname" && { name: value }),
    ...(attribute === "externalid" && { externalId: value }),
  };
  const { groups, total } = await findProvisionedGroups(db, caller, condition, offset, count);
  const resources: ScimGroup[] = [];
  const listed = withMembers
    ? groups.slice(0, fittingGroups(groups.map(({ group }) => group.memberCount)))
    : groups;
  for (const group of listed) resources.push(await scimGroupOf(db, caller, group, withMembers));
  return { resources, total };
}

/** Returns a group. @throws DomainError NOT_FOUND */
export async function getScimGroup(
  { store }: ScimDependencies,
  caller: Caller,
  id: string,
  withMembers: boolean,
): Promise<ScimGroup> {
  return scimGroupOf(store.reader, caller, await getProvisioned(store.reader, caller, id), withMembers);
}

/** Creates a group. @throws DomainError VALUE_TAKEN, VALUE_UNUSABLE, LIMIT_REACHED */
export function createScimGroup(deps: ScimDependencies, caller: Caller, body: unknown): Promise<ScimGroup> {
  const values = scimGroupValues(body);
  return writeAsProvisioner(deps, caller, "scim/CreateGroup", async (tx) => {
    requireGroupsKnown(mayStore(tx, GROUPS_LEVEL));
    requireRoomForGroup(await countGroups(tx.db, caller));
    requireNameFree(await findGroupByName(tx.db, caller, values.displayName), "");
    const { organizationId } = caller;
    const template = { id: tx.newId(), organizationId, isManaged: true, now: tx.now };
    const made = newGroup({ ...template, name: values.displayName, description: "" });
    const group = await insertGroup(tx, caller, made, SCIM_PROVIDER);
    return setValues(tx, caller, { group, externalId: "" }, values);
  });
}

/** Applies a PUT to a group. @throws DomainError NOT_FOUND, VALUE_TAKEN, VALUE_UNUSABLE, LIMIT_REACHED */
export function replaceScimGroup(deps: ScimDependencies, caller: Caller, id: string, body: unknown) {
  const values = scimGroupValues(body);
  return writeAsProvisioner(deps, caller, "scim/ReplaceGroup", async (tx) =>
    setValues(tx, caller, await getProvisioned(tx.db, caller, id), values),
  );
}

/** Applies a PATCH to a group. @throws DomainError as replaceScimGroup */
export function patchScimGroup(deps: ScimDependencies, caller: Caller, id: string, body: unknown) {
  const changes = patchChanges(body);
  return writeAsProvisioner(deps, caller, "scim/PatchGroup", async (tx) => {
    const before = await getProvisioned(tx.db, caller, id);
    const { displayName, externalId, members } = await scimGroupOf(tx.db, caller, before, true);
    const memberIds = new Set(members.map((member) => member.id));
    return setValues(tx, caller, before, patchedGroupValues({ displayName, externalId, memberIds }, changes));
  });
}

/** Deletes a group. @throws DomainError NOT_FOUND */
export function deleteScimGroup(deps: ScimDependencies, caller: Caller, id: string): Promise<void> {
  return writeAsProvisioner(deps, caller, "scim/DeleteGroup", async (tx) => {
    await removeGroup(tx, caller, (await getProvisioned(tx.db, caller, id)).group);
  });
}

async function setValues(
  tx: WriteTransaction,
  scope: Scope,
  before: ProvisionedGroup,
  { displayName, externalId, memberIds }: ScimGroupValues,
): Promise<ScimGroup> {
  const { group } = before;
  if (displayName !== group.name) {
    requireNameFree(await findGroupByName(tx.db, scope, displayName), group.id);
    const { description } = group;
    await updateGroup(tx, scope, group, updatedGroup(group, { name: displayName, description }, tx.now));
  }
  if (externalId !== before.externalId) await setGroupExternalId(tx, scope, group, externalId);
  requireRoomForMembers(memberIds.size);
  await removeOtherMemberships(tx, scope, group, memberIds);
  const held = await findMembershipsOfGroup(tx.db, scope, group);
  const known = new Set(held.map(({ subjectId }) => subjectId));
  const added = [...memberIds].filter((id) => !known.has(id));
  for (const id of added) requireUserOfOrganization(await findMember(tx.db, scope, id));
  const subjects = added.map((id) => ({ id, principal: Principal.USER }));
  await insertMemberships(tx, scope, group, subjects, SCIM_PROVIDER);
  return scimGroupOf(tx.db, scope, await getProvisioned(tx.db, scope, group.id), true);
}

async function getProvisioned(db: Reader, scope: Scope, id: string): Promise<ProvisionedGroup> {
  const { groups } = await findProvisionedGroups(db, scope, { id }, 0, 1);
  const [found] = groups;
  if (!found) throw notFound("group");
  return found;
}

async function scimGroupOf(
  db: Reader,
  scope: Scope,
  { group, externalId }: ProvisionedGroup,
  withMembers: boolean,
): Promise<ScimGroup> {
  const members = withMembers ? await findMembershipsOfGroup(db, scope, group) : [];
  return {
    id: group.id,
    displayName: group.name,
    externalId,
    members: members.map(({ subjectId, name }) => ({ id: subjectId, name })),
    createdAt: group.createdAt ? timestampMs(group.createdAt) : 0,
  };
}
