import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Annotations } from "#gen/service/v1/annotations_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Group, GroupSchema } from "#gen/service/v1/group_pb.js";
import type { GetGroupRequest } from "#gen/service/v1/group_service_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { DomainError, limitReached, phaseUnsuitable, valueTaken, valueUnusable } from "../../error.ts";
import { type Annotated, setAnnotations } from "../annotation/annotations.ts";

/** Most groups of an organization (contract, CreateGroup). */
export const MAX_GROUPS = 1_000;

/** Most members of a group (contract, CreateMembership). */
export const MAX_GROUP_MEMBERS = 10_000;

const MIN_NAME_CHARACTERS = 3;
const MAX_NAME_CHARACTERS = 80;

/**
 * Requires that every server knows groups.
 * @throws DomainError PHASE_UNSUITABLE while servers of the previous release run
 */
export function requireGroupsKnown(areKnown: boolean): void {
  if (areKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "groups can be made once every server runs this release",
  );
}

/** The values that a new group is created from. */
export interface GroupTemplate {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly description: string;
  /** True for a group that an identity provider manages. */
  readonly isManaged: boolean;
  /** Absent for none. */
  readonly annotations?: Annotations | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns a new group without members. */
export function newGroup(template: GroupTemplate): Group {
  const { id, organizationId, name, description, isManaged, annotations, now } = template;
  const group = create(GroupSchema, {
    id,
    organizationId,
    name,
    description,
    systemManaged: isManaged,
    createdAt: timestampFromMs(now),
    updatedAt: timestampFromMs(now),
  });
  if (annotations) setAnnotations(group, { annotations });
  return group;
}

/**
 * Returns a group with another name and description, and with other annotations if any are given.
 * @param now in milliseconds since 1970 UTC
 */
export function updatedGroup(
  before: Group,
  { name, description, ...more }: Pick<Group, "name" | "description"> & Annotated,
  now: number,
): Group {
  const after = clone(GroupSchema, before);
  Object.assign(after, { name, description, updatedAt: timestampFromMs(now) });
  setAnnotations(after, more);
  return after;
}

/** Returns whether a text may be the name of a group (contract, CreateGroupRequest). */
export function isGroupName(name: string): boolean {
  const length = [...name].length;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are searched for.
  const hasControl = /[\x00-\x1f\x7f-\x9f]/.test(name);
  return length >= MIN_NAME_CHARACTERS && length <= MAX_NAME_CHARACTERS && !hasControl;
}

/** Requires that people may change the name and the members of a group. @throws DomainError MANAGED_BY_PROVIDER */
export function requireNotManaged({ systemManaged, name }: Group): void {
  if (!systemManaged) return;
  throw new DomainError(
    ErrorReason.MANAGED_BY_PROVIDER,
    `an identity provider keeps the group ${name}: change it there, or delete it and make another`,
    { resource: "group" },
  );
}

/** Requires that a subject is named and of a kind that groups have. @throws DomainError VALUE_UNUSABLE */
export function requireGroupMember(subject: Subject | undefined): asserts subject is Subject {
  const principal = subject?.principal;
  if (principal === Principal.USER || principal === Principal.SERVICE_ACCOUNT) return;
  throw valueUnusable("subject.principal", "members of groups are users and service accounts");
}

/** Requires room for one more group. @param count groups of the organization @throws DomainError LIMIT_REACHED */
export function requireRoomForGroup(count: number): void {
  if (count < MAX_GROUPS) return;
  throw limitReached("group", MAX_GROUPS, `the organization has ${MAX_GROUPS} groups, which is the maximum`);
}

/** Requires room for one more member of a group. @throws DomainError LIMIT_REACHED */
export function requireRoomForMember({ memberCount }: Group): void {
  requireRoomForMembers(memberCount + 1);
}

/** Requires that a group may have so many members. @throws DomainError LIMIT_REACHED */
export function requireRoomForMembers(count: number): void {
  if (count <= MAX_GROUP_MEMBERS) return;
  const message = `a group has ${MAX_GROUP_MEMBERS} members at most`;
  throw limitReached("group membership", MAX_GROUP_MEMBERS, message);
}

/**
 * Requires that no other group has a name.
 * @param named the group with the name, if any
 * @param id of the group that is to have it; empty for a new one
 * @throws DomainError VALUE_TAKEN
 */
export function requireNameFree(named: Pick<Group, "id"> | undefined, id: string): void {
  if (!named || named.id === id) return;
  throw valueTaken("group", "name", "a group of the organization has this name: choose another");
}

/** Requires that a request names a group, by its id or its name. @throws DomainError VALUE_UNUSABLE */
export function requireGroupNamed({ group, groupId }: Pick<GetGroupRequest, "group" | "groupId">): void {
  if (group.case === undefined && groupId === "")
    throw valueUnusable("id", "name the group, by its id or its name");
}
