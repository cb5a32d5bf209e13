import { ADMINISTRATORS, MEMBERS, type Permission } from "../grants.ts";

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
};
