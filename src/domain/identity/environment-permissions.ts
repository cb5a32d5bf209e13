import { CREATORS, MEMBERS, OWNED_BY_CREATOR, type Permission } from "./grants.ts";

const CONTENT =
  "environments that the caller made, and those of agent runs that it may read; administrators: every one";
const PUSHES =
  "the organization's policy `agentPolicy.pushRules`; with the caller's own credential for the host alone";
const OWN_ENVIRONMENTS = "a runner's: the environments on it; an environment's: itself";

/** Rows of the permissions table for environments. */
export const ENVIRONMENT_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "EnvironmentService/GetEnvironment": {
    permission: "get_environment",
    grants: { ...MEMBERS, runner: "own", environment: "own" },
    own: OWN_ENVIRONMENTS,
  },
  "EnvironmentService/ListEnvironments": {
    permission: "list_environments",
    grants: { ...MEMBERS, runner: "own" },
    own: "the environments on the runner",
  },
  "EnvironmentService/CreateEnvironment": {
    permission: "create_environment",
    grants: MEMBERS,
    condition: "the organization's policies",
  },
  "EnvironmentService/CreateEnvironmentFromProject": {
    permission: "create_environment",
    grants: MEMBERS,
    condition: "the organization's policies",
  },
  "EnvironmentService/StartEnvironment": {
    permission: "start_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "EnvironmentService/StopEnvironment": {
    permission: "stop_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "EnvironmentService/DeleteEnvironment": {
    permission: "delete_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "EnvironmentService/UpdateEnvironment": {
    permission: "update_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
    condition: "the organization's policies",
  },
  "EnvironmentService/ArchiveEnvironment": {
    permission: "archive_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "EnvironmentService/UnarchiveEnvironment": {
    permission: "archive_environment",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "EnvironmentService/ListEnvironmentClasses": {
    permission: "list_environment_classes",
    grants: { ...MEMBERS, runner: "own" },
    own: "the classes of the runner",
  },

  "EnvironmentService/GetEnvironmentChanges": {
    permission: "get_environment_changes",
    grants: MEMBERS,
    condition: CONTENT,
  },
  "EnvironmentService/GetEnvironmentDiff": {
    permission: "get_environment_changes",
    grants: MEMBERS,
    condition: CONTENT,
  },
  "EnvironmentService/ListEnvironmentConnections": {
    permission: "get_environment_changes",
    grants: MEMBERS,
    condition: CONTENT,
  },
  "EnvironmentService/PushEnvironmentBranch": {
    permission: "push_environment_branch",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
    condition: PUSHES,
  },
  "EnvironmentService/OpenPullRequest": {
    permission: "push_environment_branch",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
    condition: PUSHES,
  },
  "EnvironmentService/ListEnvironmentFiles": {
    permission: "get_environment_changes",
    grants: MEMBERS,
    condition: CONTENT,
  },
  "EnvironmentService/ReadEnvironmentFile": {
    permission: "get_environment_changes",
    grants: MEMBERS,
    condition: CONTENT,
  },
};

/** Returns the row of an operation that changes prebuilds, which environments start from, for those who may change their project. */
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
