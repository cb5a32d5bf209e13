import { ADMINISTRATORS, CREATORS, MEMBERS, type Permission } from "../grants.ts";

const SHARED =
  "resources that the caller made or started, and those that a group of it has the role `admin` on";

/** Rows of the permissions table for groups and their members. */
export const GROUP_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "GroupService/CreateGroup": { permission: "create_group", grants: ADMINISTRATORS },
  "GroupService/GetGroup": { permission: "get_group", grants: MEMBERS },
  "GroupService/ListGroups": { permission: "list_groups", grants: MEMBERS },
  "GroupService/UpdateGroup": { permission: "update_group", grants: ADMINISTRATORS },
  "GroupService/DeleteGroup": { permission: "delete_group", grants: ADMINISTRATORS },
  "GroupService/CreateMembership": { permission: "create_group_membership", grants: ADMINISTRATORS },
  "GroupService/DeleteMembership": { permission: "delete_group_membership", grants: ADMINISTRATORS },
  "GroupService/GetMembership": { permission: "get_group_membership", grants: MEMBERS },
  "GroupService/ListMemberships": { permission: "list_group_memberships", grants: MEMBERS },
  "GroupService/CreateRoleAssignment": {
    permission: "create_role_assignment",
    grants: CREATORS,
    own: SHARED,
    condition: "agent runs: unless the organization's conversation sharing policy forbids it",
  },
  "GroupService/UpdateRoleAssignment": {
    permission: "update_role_assignment",
    grants: CREATORS,
    own: SHARED,
  },
  "GroupService/DeleteRoleAssignment": {
    permission: "delete_role_assignment",
    grants: CREATORS,
    own: SHARED,
  },
  "GroupService/ListRoleAssignments": {
    permission: "list_role_assignments",
    grants: MEMBERS,
    condition: "of a resource that the caller may read",
  },
};
