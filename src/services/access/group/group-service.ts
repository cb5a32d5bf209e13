import { create, toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Group, GroupMembershipSchema } from "#gen/service/v1/group_pb.js";
import {
  type GroupService as Contract,
  type CreateGroupRequest,
  type CreateMembershipRequest,
  type CreateRoleAssignmentRequest,
  type DeleteGroupRequest,
  type DeleteMembershipRequest,
  type DeleteRoleAssignmentRequest,
  type GetGroupRequest,
  type GetMembershipRequest,
  type ListGroupsRequest,
  ListGroupsRequest_FilterSchema,
  type ListMembershipsRequest,
  type ListRoleAssignmentsRequest,
  type UpdateGroupRequest,
  type UpdateRoleAssignmentRequest,
} from "#gen/service/v1/group_service_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { notFound } from "../../../domain/error.ts";
import {
  hasSameAnnotations,
  requireAnnotationsKnown,
} from "../../../domain/identity/annotation/annotations.ts";
import {
  newGroup,
  requireGroupMember,
  requireGroupNamed,
  requireGroupsKnown,
  requireNameFree,
  requireNotManaged,
  requireRoomForGroup,
  requireRoomForMember,
  updatedGroup,
} from "../../../domain/identity/group/group.ts";
import { fold } from "../../../domain/text/fold.ts";
import { ANNOTATIONS_LEVEL, GROUPS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import {
  countGroups,
  type FoundGroup,
  findGroup,
  findGroupByName,
  findGroupPage,
  insertGroup,
  removeGroup,
  updateGroup,
} from "../../../store/identity/group.ts";
import {
  findGroupMembership,
  findMembershipById,
  findMembershipPage,
  insertMembership,
  type MembershipFacts,
  removeGroupMembership,
} from "../../../store/identity/group-membership.ts";
import { findMember } from "../../../store/identity/member.ts";
import { findServiceAccount } from "../../../store/identity/service-account.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { callerOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { listPage } from "../../call/page.ts";
import {
  changeRoleAssignment,
  createRoleAssignment,
  deleteRoleAssignment,
  isReadableResource,
  listRoleAssignments,
} from "./role-assignments.ts";

/** Serves groups and their members. */
export class GroupService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createRoleAssignment = (req: CreateRoleAssignmentRequest, ctx: HandlerContext) =>
    createRoleAssignment(this.#deps, req, ctx);

  updateRoleAssignment = (req: UpdateRoleAssignmentRequest, ctx: HandlerContext) =>
    changeRoleAssignment(this.#deps, req, ctx);

  deleteRoleAssignment = (req: DeleteRoleAssignmentRequest, ctx: HandlerContext) =>
    deleteRoleAssignment(this.#deps, req, ctx);

  listRoleAssignments = (req: ListRoleAssignmentsRequest, ctx: HandlerContext) =>
    listRoleAssignments(this.#deps, req, ctx);

  createGroup({ organizationId, name, description, annotations }: CreateGroupRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      if (organizationId !== caller.organizationId) throw notFound("organization");
      requireGroupsKnown(mayStore(tx, GROUPS_LEVEL));
      requireRoomForGroup(await countGroups(tx.db, caller));
      requireNameFree(await findGroupByName(tx.db, caller, name), "");
      const context = { id: tx.newId(), organizationId, isManaged: false, now: tx.now };
      const group = newGroup({ ...context, name, description, annotations });
      return { group: await insertGroup(tx, caller, group, null) };
    });
  }

  async getGroup(req: GetGroupRequest, ctx: HandlerContext) {
    const [db, caller] = [this.#deps.store.reader, callerOf(ctx)];
    requireGroupNamed(req);
    const { group, groupId } = req;
    const id = group.case === "id" ? group.value : groupId;
    const found =
      group.case === "name"
        ? await findGroupByName(db, caller, group.value)
        : await findGroup(db, caller, id);
    if (!found) throw notFound("group");
    return { group: found };
  }

  async listGroups({ filter, pagination }: ListGroupsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const shared = filter?.excludeAssignedToResource;
    const field = "filter.excludeAssignedToResource.resourceType";
    const isKnown = !shared || (await isReadableResource(this.#deps.store.reader, caller, shared, field));
    const conditions = {
      ids: filter?.groupIds ?? [],
      notOnResourceId: shared?.resourceId,
      isManaged: filter?.systemManaged,
      search: fold(filter?.search ?? ""),
    };
    // Shares with single subjects have no groups, and a resource that the caller may not read must not be revealed.
    const isNone = filter?.directShare === true || !isKnown;
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListGroups",
      parts: [filter && toJson(ListGroupsRequest_FilterSchema, filter)],
      pagination,
      search: conditions.search,
      find: async (db, after, limit) => (isNone ? [] : findGroupPage(db, caller, conditions, after, limit)),
    });
    return { ...page, groups: rows };
  }

  updateGroup(req: UpdateGroupRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { groupId, name } = req;
      const before = await getGroup(tx.db, caller, groupId);
      requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
      const after = updatedGroup(before, req, tx.now);
      if (isSameGroup(before, after)) return { group: before };
      if (name !== before.name) requireNotManaged(before);
      requireNameFree(await findGroupByName(tx.db, caller, name), groupId);
      return { group: await updateGroup(tx, caller, before, after) };
    });
  }

  deleteGroup({ groupId }: DeleteGroupRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      await removeGroup(tx, caller, await getGroup(tx.db, caller, groupId));
      return {};
    });
  }

  createMembership({ groupId, subject }: CreateMembershipRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const group = await getGroup(tx.db, caller, groupId);
      requireGroupMember(subject);
      await requireMemberOfOrganization(tx, caller, subject);
      const existing = await findGroupMembership(tx.db, caller, groupId, subject);
      if (existing) return { member: membershipMessage(existing) };
      requireNotManaged(group);
      requireRoomForMember(group);
      await insertMembership(tx, caller, group, subject, null);
      return { member: await getMembership(tx.db, caller, groupId, subject) };
    });
  }

  deleteMembership({ membershipId }: DeleteMembershipRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const row = await findMembershipById(tx.db, caller, membershipId);
      if (!row) throw notFound("group membership");
      requireNotManaged(await getGroup(tx.db, caller, row.group_id));
      await removeGroupMembership(tx, caller, row);
      return {};
    });
  }

  async getMembership({ groupId, subject }: GetMembershipRequest, ctx: HandlerContext) {
    const [db, caller] = [this.#deps.store.reader, callerOf(ctx)];
    await getGroup(db, caller, groupId);
    return { member: subject && (await getMembership(db, caller, groupId, subject)) };
  }

  async listMemberships({ groupId, filter, pagination }: ListMembershipsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const group = await getGroup(this.#deps.store.reader, caller, groupId);
    const search = fold(filter?.search ?? "");
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListMemberships",
      parts: [groupId, search],
      pagination,
      search,
      find: (db, after, limit) => findMembershipPage(db, caller, group, search, after, limit),
    });
    return { ...page, members: rows.map(membershipMessage) };
  }
}

function isSameGroup(before: Group, after: Group): boolean {
  const { name, description } = before;
  return name === after.name && description === after.description && hasSameAnnotations(before, after);
}

/** @throws DomainError NOT_FOUND */
async function getGroup(db: Reader, scope: Scope, id: string): Promise<FoundGroup> {
  const group = await findGroup(db, scope, id);
  if (!group) throw notFound("group");
  return group;
}

/** @throws DomainError NOT_FOUND */
async function getMembership(db: Reader, scope: Scope, groupId: string, subject: Subject) {
  const found = await findGroupMembership(db, scope, groupId, subject);
  if (!found) throw notFound("group membership");
  return membershipMessage(found);
}

/** @throws DomainError NOT_FOUND */
async function requireMemberOfOrganization(tx: WriteTransaction, scope: Scope, { id, principal }: Subject) {
  if (principal === Principal.USER) {
    if (!(await findMember(tx.db, scope, id))) throw notFound("user");
  } else if (!(await findServiceAccount(tx.db, scope, id))) throw notFound("service account");
}

function membershipMessage({ id, groupId, subjectId, principal, name }: MembershipFacts) {
  return create(GroupMembershipSchema, { id, groupId, subject: { id: subjectId, principal }, name });
}
