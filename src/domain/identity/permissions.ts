import { AGENT_PERMISSIONS } from "./agent-permissions.ts";
import type { Role } from "./caller.ts";
import { ENVIRONMENT_PERMISSIONS, PREBUILD_PERMISSIONS } from "./environment-permissions.ts";
import { ADMINISTRATORS, CREATORS, MEMBERS, OWNED_OR_ADMINISTERED, type Permission, SELF } from "./grants.ts";
import { GROUP_PERMISSIONS } from "./group/group-permissions.ts";
import { ORGANIZATION_PERMISSIONS, USER_PERMISSIONS } from "./organization-permissions.ts";
import { WORKFLOW_PERMISSIONS } from "./workflow-permissions.ts";

export type { Grant } from "./grants.ts";

const HOST_TOKENS = "tokens of the caller itself";
const PREBUILDS = "prebuilds run as the caller, the project's creator or a service account";
const PREBUILDS_LATER = `${PREBUILDS}, or as they did; only administrators change what is cloned as another person`;

const SECRETS =
  "of the organization and of service accounts: administrators; of a project: administrators, who made it and groups with the role `admin` on it; of a user: that user alone";

/** Rows of the permissions table for secrets. */
const SECRET_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "SecretService/CreateSecret": { permission: "create_secret", grants: MEMBERS, condition: SECRETS },
  "SecretService/UpdateSecretValue": { permission: "update_secret", grants: MEMBERS, condition: SECRETS },
  "SecretService/ListSecrets": {
    permission: "list_secrets",
    grants: MEMBERS,
    condition:
      "secrets of the organization and its projects, and the caller's own; administrators: those of service accounts",
  },
  "SecretService/DeleteSecret": { permission: "delete_secret", grants: MEMBERS, condition: SECRETS },
};

/** Returns the row of an operation of administrators alone. */
const administered = (permission: string): Permission => ({ permission, grants: ADMINISTRATORS });

/** Rows of the permissions table for event subscriptions, which show every event of an organization. */
const EVENT_SUBSCRIPTION_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "EventSubscriptionService/CreateEventSubscription": administered("create_event_subscription"),
  "EventSubscriptionService/GetEventSubscription": administered("get_event_subscription"),
  "EventSubscriptionService/ListEventSubscriptions": administered("list_event_subscriptions"),
  "EventSubscriptionService/UpdateEventSubscription": administered("update_event_subscription"),
  "EventSubscriptionService/DeleteEventSubscription": administered("delete_event_subscription"),
  "EventSubscriptionService/RotateEventSubscriptionSecret": administered("update_event_subscription"),
  "EventSubscriptionService/ListEventDeliveries": administered("list_event_deliveries"),
  "EventSubscriptionService/RedeliverEvent": administered("redeliver_event"),
};

/**
 * The permissions table: the permission that each operation of the contract needs, and the roles
 * that have it.
 */
export const PERMISSIONS: Readonly<Record<string, Permission>> = {
  "AccountService/GetAccount": {
    permission: "get_account",
    grants: SELF,
    own: "the caller's own account",
  },
  "AccountService/BlockAccount": {
    permission: "block_account",
    grants: ADMINISTRATORS,
    condition: "an administrator of every organization that the account is a member of",
  },
  "AccountService/UnblockAccount": {
    permission: "block_account",
    grants: ADMINISTRATORS,
    condition: "an administrator of every organization that the account is a member of",
  },

  ...AGENT_PERMISSIONS,

  ...ENVIRONMENT_PERMISSIONS,

  "EventService/ListAuditLogs": { permission: "list_audit_logs", grants: ADMINISTRATORS },
  "EventService/GetAuditLog": { permission: "get_audit_log", grants: ADMINISTRATORS },
  "EventService/WatchEvents": {
    permission: "watch_events",
    grants: MEMBERS,
    condition: "the events of what the caller may read, asked for each",
  },

  ...EVENT_SUBSCRIPTION_PERMISSIONS,

  ...GROUP_PERMISSIONS,

  "IdentityService/GetAuthenticatedIdentity": {
    permission: "get_authenticated_identity",
    grants: { ...MEMBERS, runner: "any", environment: "any" },
  },

  ...ORGANIZATION_PERMISSIONS,

  ...PREBUILD_PERMISSIONS,

  "ProjectService/CreateProject": {
    permission: "create_project",
    grants: MEMBERS,
    condition: `the organization's policies; ${PREBUILDS}`,
  },
  "ProjectService/CreateProjects": {
    permission: "create_project",
    grants: MEMBERS,
    condition: `the organization's policies; ${PREBUILDS}`,
  },
  "ProjectService/CreateProjectFromEnvironment": {
    permission: "create_project",
    grants: MEMBERS,
    condition: "the organization's policies",
  },
  "ProjectService/GetProject": {
    permission: "get_project",
    grants: { ...MEMBERS, environment: "own" },
    own: "the project that the environment was created from",
  },
  "ProjectService/ListProjects": { permission: "list_projects", grants: MEMBERS },
  "ProjectService/UpdateProject": {
    permission: "update_project",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
    condition: PREBUILDS_LATER,
  },
  "ProjectService/UpdateProjects": {
    permission: "update_project",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
    condition: PREBUILDS_LATER,
  },
  "ProjectService/DeleteProject": {
    permission: "delete_project",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
  },
  "ProjectService/ListProjectEnvironmentClasses": {
    permission: "list_project_environment_classes",
    grants: MEMBERS,
  },
  "ProjectService/UpdateProjectEnvironmentClasses": {
    permission: "update_project_environment_classes",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
  },

  "ResourceService/PreviewChanges": {
    permission: "preview_changes",
    grants: MEMBERS,
    condition: "the permission of each change",
  },
  "ResourceService/ApplyChanges": {
    permission: "apply_changes",
    grants: MEMBERS,
    condition: "the permission of each change",
  },

  "RunnerConfigurationService/CreateHostAuthenticationToken": {
    permission: "create_host_authentication_token",
    grants: CREATORS,
    own: HOST_TOKENS,
  },
  "RunnerConfigurationService/GetHostAuthenticationToken": {
    permission: "get_host_authentication_token",
    grants: CREATORS,
    own: HOST_TOKENS,
  },
  "RunnerConfigurationService/ListHostAuthenticationTokens": {
    permission: "list_host_authentication_tokens",
    grants: CREATORS,
    own: HOST_TOKENS,
  },
  "RunnerConfigurationService/UpdateHostAuthenticationToken": {
    permission: "update_host_authentication_token",
    grants: CREATORS,
    own: HOST_TOKENS,
  },
  "RunnerConfigurationService/DeleteHostAuthenticationToken": {
    permission: "delete_host_authentication_token",
    grants: CREATORS,
    own: HOST_TOKENS,
  },
  "RunnerConfigurationService/CreateEnvironmentClass": {
    permission: "create_environment_class",
    grants: ADMINISTRATORS,
  },
  "RunnerConfigurationService/GetEnvironmentClass": {
    permission: "get_environment_class",
    grants: { ...MEMBERS, runner: "own" },
    own: "the classes of the runner",
  },
  "RunnerConfigurationService/ListEnvironmentClasses": {
    permission: "list_environment_classes",
    grants: { ...MEMBERS, runner: "own" },
    own: "the classes of the runner",
  },
  "RunnerConfigurationService/UpdateEnvironmentClass": {
    permission: "update_environment_class",
    grants: ADMINISTRATORS,
  },

  "RunnerService/CreateRunner": { permission: "create_runner", grants: ADMINISTRATORS },
  "RunnerService/GetRunner": {
    permission: "get_runner",
    grants: { ...MEMBERS, runner: "own" },
    own: "the runner itself",
  },
  "RunnerService/ListRunners": { permission: "list_runners", grants: MEMBERS },
  "RunnerService/UpdateRunner": { permission: "update_runner", grants: ADMINISTRATORS },
  "RunnerService/DeleteRunner": { permission: "delete_runner", grants: ADMINISTRATORS },
  "RunnerService/CreateRunnerToken": { permission: "create_runner_token", grants: ADMINISTRATORS },
  "RunnerService/ParseContextURL": { permission: "parse_context_url", grants: MEMBERS },
  "RunnerService/CheckRepositoryAccess": { permission: "check_repository_access", grants: MEMBERS },

  ...SECRET_PERMISSIONS,

  "SecurityService/CreateSecurityPolicy": { permission: "create_security_policy", grants: ADMINISTRATORS },
  "SecurityService/GetSecurityPolicy": { permission: "get_security_policy", grants: MEMBERS },
  "SecurityService/ListSecurityPolicies": { permission: "list_security_policies", grants: MEMBERS },
  "SecurityService/UpdateSecurityPolicy": { permission: "update_security_policy", grants: ADMINISTRATORS },
  "SecurityService/DeleteSecurityPolicy": { permission: "delete_security_policy", grants: ADMINISTRATORS },

  "ServiceAccountService/CreateServiceAccount": {
    permission: "create_service_account",
    grants: ADMINISTRATORS,
  },
  "ServiceAccountService/ListServiceAccounts": { permission: "list_service_accounts", grants: MEMBERS },
  "ServiceAccountService/DeleteServiceAccount": {
    permission: "delete_service_account",
    grants: ADMINISTRATORS,
  },
  "ServiceAccountService/CreateServiceAccountToken": {
    permission: "create_service_account_token",
    grants: { ...ADMINISTRATORS, service_account: "own" },
    own: "tokens of the service account itself",
  },
  "ServiceAccountService/ListServiceAccountTokens": {
    permission: "list_service_account_tokens",
    grants: CREATORS,
    own: "a member's: tokens that it created; a service account's: its own",
  },
  "ServiceAccountService/DeleteServiceAccountToken": {
    permission: "delete_service_account_token",
    grants: CREATORS,
    own: "a member's: tokens that it created; a service account's: its own",
  },

  "ServiceAccountService/CreateServiceAccountTrust": {
    permission: "create_service_account_trust",
    grants: ADMINISTRATORS,
  },
  "ServiceAccountService/ListServiceAccountTrusts": {
    permission: "list_service_account_trusts",
    grants: ADMINISTRATORS,
  },
  "ServiceAccountService/DeleteServiceAccountTrust": {
    permission: "delete_service_account_trust",
    grants: ADMINISTRATORS,
  },

  ...USER_PERMISSIONS,

  ...WORKFLOW_PERMISSIONS,
};

/** The resources that each role may read, in words for docs/permissions.md. */
export const READERS: Readonly<Record<Role, string>> = {
  administrator:
    "everything of its organization, except the personal access tokens of others and values of credentials",
  member:
    "everything of its organization, except the audit trail, tokens of others, values of credentials and, unless they are shared, agent runs of others",
  service_account:
    "what a member sees, except accounts and personal access tokens; of service account tokens, its own",
  runner: "itself, its environment classes, and the environments and agent runs on it",
  environment: "itself and the project that it was created from",
  exchange: "nothing: it registers the runner that it was made for",
};

/**
 * Returns the row of an operation.
 * @param operation full name, such as `service.v1.ProjectService/GetProject`
 * @returns undefined for an operation of another contract
 * @throws for an operation of the contract that the table lacks, so that nobody may call it
 */
export function permissionOf(operation: string): Permission | undefined {
  const known = byOperation.get(operation);
  if (known) return known;
  const name = /^(?:service|runner)\.v1\.(.+)$/.exec(operation)?.[1];
  if (name === undefined) return undefined;
  const found = PERMISSIONS[name];
  if (!found) throw new Error(`domain/permissions.ts has no row for ${operation}`);
  byOperation.set(operation, found);
  return found;
}

/** Cache of rows by operation: every request reads several. */
const byOperation = new Map<string, Permission>();
