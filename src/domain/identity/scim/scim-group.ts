import { valueUnusable } from "../../error.ts";
import { isGroupName, MAX_GROUP_MEMBERS } from "../group/group.ts";
import { attributesOf, type PatchChange, requiredAttribute, type ScimResource, textOf } from "./scim-json.ts";

/** A group as SCIM shows it. */
export interface ScimGroup {
  readonly id: string;
  readonly displayName: string;
  /** Id of the group at the provider; empty for none. */
  readonly externalId: string;
  readonly members: readonly { readonly id: string; readonly name: string }[];
  /** Milliseconds since 1970 UTC. */
  readonly createdAt: number;
}

/** The group of a request; members by their ids. */
export interface ScimGroupValues {
  readonly displayName: string;
  readonly externalId: string;
  readonly memberIds: ReadonlySet<string>;
}

export const GROUP_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Group";

/** Returns the group in the body of a POST or PUT. @throws DomainError VALUE_UNUSABLE, BODY_MALFORMED */
export function scimGroupValues(body: unknown): ScimGroupValues {
  const attributes = attributesOf(body);
  return {
    displayName: groupNameOf(attributes.get("displayname")),
    externalId: textOf("externalId", attributes.get("externalid")) ?? "",
    memberIds: new Set(memberIdsOf(attributes.get("members") ?? [])),
  };
}

const ONE_MEMBER = /^members\[\s*value\s+eq\s+"([^"]*)"\s*\]$/;

/** Returns a group after the changes of a PATCH. @throws DomainError VALUE_UNUSABLE */
export function patchedGroupValues(
  before: ScimGroupValues,
  changes: readonly PatchChange[],
): ScimGroupValues {
  const memberIds = new Set(before.memberIds);
  let { displayName, externalId } = before;
  for (const { op, path, value } of changes) {
    const [, one] = ONE_MEMBER.exec(path) ?? [];
    if (one !== undefined && op === "remove") memberIds.delete(one);
    else if (path === "members") changeMembers(memberIds, op, value);
    else if (path === "displayname" && op === "remove") throw requiredAttribute("displayName");
    else if (path === "displayname") displayName = groupNameOf(value);
    else if (path === "externalid") externalId = op === "remove" ? "" : (textOf("externalId", value) ?? "");
    // Some providers repeat the id among the attributes to replace.
    else if (path !== "id" && path !== "schemas")
      throw valueUnusable("path", "the path must be displayName, externalId or members");
  }
  return { displayName, externalId, memberIds };
}

function changeMembers(memberIds: Set<string>, op: PatchChange["op"], value: unknown): void {
  // Null means no value, as an empty list does (RFC 7643, 2.5).
  const hasValue = value !== undefined && value !== null;
  if (op === "replace" || (op === "remove" && !hasValue)) memberIds.clear();
  if (!hasValue) return;
  for (const id of memberIdsOf(value)) {
    if (op === "remove") memberIds.delete(id);
    else memberIds.add(id);
  }
}

function memberIdsOf(value: unknown): string[] {
  const members = Array.isArray(value) ? value : [value];
  return members.map((member) => {
    const id = textOf("members.value", attributesOf(member).get("value"));
    if (!id) throw valueUnusable("members.value", "each member must have the id of a user as its value");
    return id.toLowerCase();
  });
}

function groupNameOf(value: unknown): string {
  const name = textOf("displayName", value);
  if (name !== undefined && isGroupName(name)) return name;
  throw valueUnusable("displayName", "displayName must have 3 to 80 characters");
}

/**
 * Returns how many groups of a page are listed with their members: the first, and those after it as long as all of
 * them have no more members than one group may have.
 * @param memberCounts of the groups, in the order of the page
 */
export function fittingGroups(memberCounts: readonly number[]): number {
  let members = 0;
  const end = memberCounts.findIndex((count, index) => {
    members += count;
    return index > 0 && members > MAX_GROUP_MEMBERS;
  });
  return end === -1 ? memberCounts.length : end;
}

/** Returns a group in the form of RFC 7643. @param location base URL of the server's SCIM */
export function scimGroupJson(group: ScimGroup, location: string, withMembers: boolean): ScimResource {
  const { id, displayName, externalId, members, createdAt } = group;
  return {
    schemas: [GROUP_SCHEMA],
    id,
    ...(externalId !== "" && { externalId }),
    displayName,
    ...(withMembers && {
      members: members.map((member) => ({
        value: member.id,
        display: member.name,
        type: "User",
        $ref: `${location}/Users/${member.id}`,
      })),
    }),
    meta: {
      resourceType: "Group",
      created: new Date(createdAt).toISOString(),
      location: `${location}/Groups/${id}`,
    },
  };
}

/** Requires that a member that a request names is a user. @throws DomainError VALUE_UNUSABLE */
export function requireUserOfOrganization(member: object | undefined): void {
  if (!member) throw valueUnusable("members.value", "a member is no user of the organization");
}
