import { CREATORS, MEMBERS, type Permission } from "./grants.ts";

/** Returns the row of an operation that changes prebuilds, for those who may change their project. */
const ofOwnProjects = (permission: string): Permission => ({
  permission,
  grants: CREATORS,
  own: "prebuilds of projects that the caller made, or on which a group of it has the role `admin`",
});

/** Rows of the permissions table for prebuilds. */
export const PREBUILD_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "PrebuildService/CreatePrebuild": ofOwnProjects("create_prebuild"),
  "PrebuildService/ListPrebuilds": { permission: "list_prebuilds", grants: MEMBERS },
  "PrebuildService/GetPrebuild": { permission: "get_prebuild", grants: MEMBERS },
  "PrebuildService/CancelPrebuild": ofOwnProjects("cancel_prebuild"),
  "PrebuildService/DeletePrebuild": ofOwnProjects("delete_prebuild"),
};
