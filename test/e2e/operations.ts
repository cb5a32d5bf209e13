import { repository } from "../harness/call.ts";
import { AGENT_OPERATIONS } from "./agent-operations.ts";
import { built, counted, type Ids, type Operation, page, within } from "./operation.ts";
import { WORK_OPERATIONS } from "./work-operations.ts";
import { WORKFLOW_OPERATIONS } from "./workflow-operations.ts";
import type { World } from "./world.ts";

const POLICY_IDS: Ids = {
  organizationId: "organization",
  "agentPolicy.approvals.rules[].deciders.userIds[]": "user",
  "agentPolicy.approvals.rules[].deciders.groupIds[]": "group",
  "agentPolicy.approvals.steps.deciders.userIds[]": "user",
  "agentPolicy.approvals.steps.deciders.groupIds[]": "group",
  "agentPolicy.pushRules.rules[].deciders.userIds[]": "user",
  "agentPolicy.pushRules.rules[].deciders.groupIds[]": "group",
  securityPolicyId: "securityPolicy",
  "securityAgentPolicy.endpointSecurity.customerSecretId": "secret",
};

const policies = (world: World) => ({
  organizationId: world.organization,
  maximumEnvironmentTimeout: "3600s",
  securityPolicyId: world.securityPolicy,
  agentPolicy: {
    commandDenyList: [],
    approvals: {
      rules: [{ effect: "EFFECT_ASK", deciders: { who: "WHO_USERS", userIds: [world.user] } }],
      steps: { deciders: { who: "WHO_USERS", userIds: [world.user] } },
    },
    pushRules: {
      rules: [
        {
          branches: ["main"],
          effect: "EFFECT_ASK",
          deciders: { who: "WHO_USERS", userIds: [world.user, world.member] },
        },
      ],
    },
  },
});

const PLACEHOLDER = "00000000-0000-4000-8000-000000000001";
const changes = (world: World) => ({
  changes: [
    {
      placeholderId: PLACEHOLDER,
      createGroup: {
        organizationId: world.organization,
        name: "Of a folder",
        annotations: { values: { "example.org/team": "shop" } },
      },
    },
    { updateGroup: { groupId: PLACEHOLDER, name: "Of a folder", description: "reviews" } },
    { updateProject: { projectId: world.project, name: "Renamed" } },
  ],
});

const prebuilds = (world: World) => ({
  prebuildConfiguration: {
    enabled: true,
    environmentClassIds: [world.environmentClass],
    trigger: { dailySchedule: { hourUtc: 4 } },
    executor: { id: world.user, principal: "PRINCIPAL_USER" },
  },
});
const PREBUILDS: Ids = within("prebuildConfiguration", {
  "environmentClassIds[]": "environmentClass",
  "executor.id": "user",
});
const spec = (world: World) => ({
  spec: {
    desiredPhase: "ENVIRONMENT_PHASE_STOPPED",
    machine: { class: world.environmentClass },
    content: { initializer: repository("https://git.example.org/team/hello.git") },
    timeout: { disconnected: "3600s" },
  },
});
const SPEC: Ids = within("spec", {
  "machine.class": "environmentClass",
  workflowActionId: "workflowAction",
  securityPolicyId: "securityPolicy",
});
const newProject = (world: World) => ({
  name: "Hello",
  initializer: repository("https://git.example.org/team/hello.git"),
  devcontainerFilePath: ".devcontainer/devcontainer.json",
  automationsFilePath: "automations.yaml",
  technicalDescription: "a web shop in one process",
  annotations: { "example.org/team": "shop" },
  ...prebuilds(world),
});
const projectUpdate = (world: World) => ({
  projectId: world.project,
  name: "Renamed",
  recommendedEditors: { editors: { code: { versions: ["1.99"] } } },
  ...prebuilds(world),
});
const shared = (resourceId: string) => ({ resourceType: "RESOURCE_TYPE_WORKFLOW", resourceId });
const PROJECT_UPDATE: Ids = { projectId: "project", ...PREBUILDS };
const securityPolicy = {
  metadata: { name: "No tunnels" },
  spec: {
    executables: {
      rules: [
        { path: "/usr/bin/ssh", effect: "EFFECT_BLOCK" },
        { path: "socat", effect: "EFFECT_AUDIT" },
      ],
    },
  },
};

/** Every operation of the contract; see every-operation.ts. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "AccountService/GetAccount": built(() => ({})),
  "AccountService/BlockAccount": built((world) => ({ accountId: world.account, reason: "left the team" }), {
    accountId: "account",
  }),
  "AccountService/UnblockAccount": built((world) => ({ accountId: world.account }), { accountId: "account" }),

  ...AGENT_OPERATIONS,

  "EnvironmentService/GetEnvironment": built((world) => ({ environmentId: world.environment }), {
    environmentId: "environment",
  }),
  "EnvironmentService/ListEnvironments": built(() => counted, {
    "filter.runnerIds[]": "runner",
    "filter.creatorIds[]": "user",
    "filter.projectIds[]": "project",
    "filter.sessionIds[]": "session",
  }),
  "EnvironmentService/CreateEnvironment": built(
    (world) => ({ name: "Trial", annotations: { "example.org/team": "shop" }, ...spec(world) }),
    { sessionId: "session", ...SPEC },
  ),
  "EnvironmentService/CreateEnvironmentFromProject": built(
    (world) => ({ projectId: world.project, spec: { machine: { class: world.environmentClass } } }),
    { projectId: "project", sessionId: "session", ...SPEC },
  ),
  "EnvironmentService/StartEnvironment": built((world) => ({ environmentId: world.environment }), {
    environmentId: "environment",
  }),
  "EnvironmentService/StopEnvironment": built((world) => ({ environmentId: world.environment }), {
    environmentId: "environment",
  }),
  "EnvironmentService/DeleteEnvironment": built(
    (world) => ({ environmentId: world.environment, force: true }),
    { environmentId: "environment" },
  ),
  "EnvironmentService/UpdateEnvironment": built(
    (world) => ({
      environmentId: world.environment,
      metadata: { name: "Renamed" },
      spec: { timeout: { disconnected: "7200s" }, content: { gitUsername: "Ada" } },
    }),
    { environmentId: "environment" },
  ),
  // It is wanted running.
  "EnvironmentService/ArchiveEnvironment": {
    ...built((world) => ({ environmentId: world.environment }), { environmentId: "environment" }),
    refusal: [400, "failed_precondition"],
  },
  "EnvironmentService/UnarchiveEnvironment": built((world) => ({ environmentId: world.environment }), {
    environmentId: "environment",
  }),
  "EnvironmentService/ListEnvironmentClasses": built(() => page, { "filter.runnerIds[]": "runner" }),
  "EnvironmentService/GetEnvironmentChanges": built((world) => ({ environmentId: world.heldEnvironment }), {
    environmentId: "heldEnvironment",
  }),
  "EnvironmentService/GetEnvironmentDiff": built(
    (world) => ({ environmentId: world.heldEnvironment, ...page }),
    { environmentId: "heldEnvironment" },
  ),
  "EnvironmentService/ListEnvironmentConnections": built(
    (world) => ({ environmentId: world.heldEnvironment, ...page }),
    { environmentId: "heldEnvironment" },
  ),
  "EnvironmentService/ListEnvironmentFiles": {
    ...built((world) => ({ environmentId: world.heldEnvironment, path: "hello", ...page }), {
      environmentId: "heldEnvironment",
    }),
    refusal: [400, "failed_precondition"],
  },
  "EnvironmentService/ReadEnvironmentFile": {
    ...built(
      (world) => ({
        environmentId: world.heldEnvironment,
        path: "hello/notes.txt",
        offset: "2",
        maxBytes: 3,
      }),
      { environmentId: "heldEnvironment" },
    ),
    refusal: [400, "failed_precondition"],
  },
  // No runner listens in a world.
  "EnvironmentService/PushEnvironmentBranch": {
    ...built((world) => ({ environmentId: world.heldEnvironment, branch: "b" }), {
      environmentId: "heldEnvironment",
    }),
    refusal: [400, "failed_precondition"],
  },
  "EnvironmentService/OpenPullRequest": {
    ...built((world) => ({ environmentId: world.heldEnvironment, branch: "b", title: "Add b" }), {
      environmentId: "heldEnvironment",
    }),
    refusal: [400, "failed_precondition"],
  },

  "EventSubscriptionService/CreateEventSubscription": built(() => ({
    name: "Team chat",
    url: "https://hooks.example.org/services/T1/canary",
    eventKinds: ["pull_request.deleted"],
    format: "EVENT_FORMAT_CHAT_TEXT",
  })),
  "EventSubscriptionService/GetEventSubscription": built(
    (world) => ({ eventSubscriptionId: world.eventSubscription }),
    { eventSubscriptionId: "eventSubscription" },
  ),
  "EventSubscriptionService/ListEventSubscriptions": built(() => page),
  "EventSubscriptionService/UpdateEventSubscription": built(
    (world) => ({ eventSubscriptionId: world.eventSubscription, name: "Other chat", paused: true }),
    { eventSubscriptionId: "eventSubscription" },
  ),
  "EventSubscriptionService/DeleteEventSubscription": built(
    (world) => ({ eventSubscriptionId: world.eventSubscription }),
    { eventSubscriptionId: "eventSubscription" },
  ),
  "EventSubscriptionService/RotateEventSubscriptionSecret": built(
    (world) => ({ eventSubscriptionId: world.eventSubscription }),
    { eventSubscriptionId: "eventSubscription" },
  ),
  "EventSubscriptionService/ListEventDeliveries": built(
    (world) => ({
      ...page,
      eventSubscriptionId: world.eventSubscription,
      filter: { states: ["EVENT_DELIVERY_STATE_FAILED"] },
    }),
    { eventSubscriptionId: "eventSubscription" },
  ),
  // The subscription is paused, so that nothing is sent while other operations are looked at.
  "EventSubscriptionService/RedeliverEvent": {
    ...built((world) => ({ eventDeliveryId: world.eventDelivery }), { eventDeliveryId: "eventDelivery" }),
    refusal: [400, "failed_precondition"],
  },

  "EventService/ListAuditLogs": built(
    () => ({ ...page, filter: { subjectTypes: ["RESOURCE_TYPE_PROJECT"] } }),
    { "filter.actorIds[]": "user", "filter.subjectIds[]": "project" },
  ),
  "EventService/GetAuditLog": built((world) => ({ auditLogEntryId: world.auditLogEntry }), {
    auditLogEntryId: "auditLogEntry",
  }),
  "EventService/WatchEvents": built(
    (world) => ({
      afterSequence: "0",
      environmentId: world.environment,
      resourceTypeFilters: [{ resourceType: "RESOURCE_TYPE_ENVIRONMENT" }],
    }),
    {
      environmentId: "environment",
      "resourceTypeFilters[].resourceIds[]": "environment",
      "resourceTypeFilters[].creatorIds[]": "user",
    },
  ),

  "IdentityService/GetAuthenticatedIdentity": built(() => ({})),

  "GroupService/CreateGroup": built(
    (world) => ({ organizationId: world.organization, name: "Release", description: "who releases" }),
    { organizationId: "organization" },
  ),
  "GroupService/GetGroup": built((world) => ({ groupId: world.group }), { id: "group", groupId: "group" }),
  "GroupService/ListGroups": built(
    (world) => ({
      ...page,
      filter: {
        excludeAssignedToResource: { resourceType: "RESOURCE_TYPE_PROJECT", resourceId: world.project },
      },
    }),
    { "filter.groupIds[]": "group", "filter.excludeAssignedToResource.resourceId": "project" },
  ),
  "GroupService/UpdateGroup": built(
    (world) => ({ groupId: world.group, name: "Day watch", description: "by day" }),
    { groupId: "group" },
  ),
  "GroupService/DeleteGroup": built((world) => ({ groupId: world.group }), { groupId: "group" }),
  "GroupService/CreateMembership": built(
    (world) => ({ groupId: world.group, subject: { id: world.member, principal: "PRINCIPAL_USER" } }),
    { groupId: "group", "subject.id": "member" },
  ),
  "GroupService/DeleteMembership": built((world) => ({ membershipId: world.groupMembership }), {
    membershipId: "groupMembership",
  }),
  "GroupService/GetMembership": built(
    (world) => ({ groupId: world.group, subject: { id: world.user, principal: "PRINCIPAL_USER" } }),
    { groupId: "group", "subject.id": "user" },
  ),
  "GroupService/ListMemberships": built((world) => ({ groupId: world.group, ...page }), { groupId: "group" }),
  "GroupService/CreateRoleAssignment": built(
    (world) => ({ groupId: world.group, ...shared(world.workflow), role: "RESOURCE_ROLE_USE" }),
    { groupId: "group", resourceId: "workflow" },
  ),
  "GroupService/UpdateRoleAssignment": built(
    (world) => ({ roleAssignmentId: world.roleAssignment, role: "RESOURCE_ROLE_ADMIN" }),
    { roleAssignmentId: "roleAssignment" },
  ),
  "GroupService/DeleteRoleAssignment": built((world) => ({ roleAssignmentId: world.roleAssignment }), {
    roleAssignmentId: "roleAssignment",
  }),
  "GroupService/ListRoleAssignments": built((world) => ({ ...shared(world.workflow), ...page }), {
    resourceId: "workflow",
  }),

  "OrganizationService/CreateOrganization": built(() => ({ name: "A second home" })),
  "OrganizationService/GetOrganization": built((world) => ({ organizationId: world.organization }), {
    organizationId: "organization",
  }),
  "OrganizationService/ListMembers": built(
    (world) => ({
      organizationId: world.organization,
      ...counted,
      sort: { field: "SORT_FIELD_DATE_JOINED" },
    }),
    { organizationId: "organization", "filter.userIds[]": "member" },
  ),
  "OrganizationService/SetRole": built(
    (world) => ({
      organizationId: world.organization,
      userId: world.member,
      role: "ORGANIZATION_ROLE_ADMIN",
    }),
    { organizationId: "organization", userId: "member" },
  ),
  "OrganizationService/RemoveMember": built(
    (world) => ({ organizationId: world.organization, userId: world.member }),
    { organizationId: "organization", userId: "member" },
  ),
  "OrganizationService/UpdateOrganization": built(
    (world) => ({
      organizationId: world.organization,
      name: "Renamed",
      inviteDomains: { domains: ["Example.org"] },
    }),
    { organizationId: "organization" },
  ),
  "OrganizationService/CreateOrganizationInvite": built(
    (world) => ({
      organizationId: world.organization,
      validFor: "86400s",
      maxUses: 3,
      role: "ORGANIZATION_ROLE_ADMIN",
    }),
    { organizationId: "organization" },
  ),
  "OrganizationService/GetOrganizationInvite": built((world) => ({ organizationId: world.organization }), {
    organizationId: "organization",
  }),
  "OrganizationService/GetOrganizationInviteSummary": built((world) => ({ inviteId: world.invite }), {
    inviteId: "invite",
  }),
  "OrganizationService/JoinOrganization": built((world) => ({ inviteId: world.invite }), {
    organizationId: "organization",
    inviteId: "invite",
  }),
  "OrganizationService/LeaveOrganization": {
    ...built((world) => ({ userId: world.member }), { userId: "member" }),
    token: (world) => world.memberToken,
  },
  "OrganizationService/GetOrganizationPolicies": built((world) => ({ organizationId: world.organization }), {
    organizationId: "organization",
  }),
  "OrganizationService/PreviewOrganizationPolicies": built(
    (world) => ({ change: policies(world) }),
    within("change", POLICY_IDS),
  ),
  "OrganizationService/PreviewRetention": built((world) => ({ organizationId: world.organization }), {
    organizationId: "organization",
  }),
  "OrganizationService/GetServerHealth": built((world) => ({ organizationId: world.organization }), {
    organizationId: "organization",
  }),
  "OrganizationService/UpdateOrganizationPolicies": built(policies, POLICY_IDS),

  "PrebuildService/CreatePrebuild": built(
    (world) => ({
      projectId: world.prebuiltProject,
      environmentClassId: world.environmentClass,
      spec: { desiredPhase: "PREBUILD_PHASE_COMPLETED", timeout: "600s" },
    }),
    { projectId: "prebuiltProject", environmentClassId: "environmentClass" },
  ),
  "PrebuildService/ListPrebuilds": built(
    () => ({
      ...page,
      filter: { phases: ["PREBUILD_PHASE_PENDING", "PREBUILD_PHASE_CANCELLED"] },
    }),
    {
      "filter.projectIds[]": "prebuiltProject",
      "filter.creatorIds[]": "user",
      "filter.executorIds[]": "user",
    },
  ),
  "PrebuildService/GetPrebuild": built((world) => ({ prebuildId: world.prebuild }), {
    prebuildId: "prebuild",
  }),
  "PrebuildService/CancelPrebuild": built((world) => ({ prebuildId: world.prebuild }), {
    prebuildId: "prebuild",
  }),
  "PrebuildService/DeletePrebuild": built((world) => ({ prebuildId: world.prebuild }), {
    prebuildId: "prebuild",
  }),

  "ProjectService/CreateProject": built(newProject, PREBUILDS),
  "ProjectService/CreateProjects": built(
    (world) => ({ projects: [newProject(world), { name: "Without an initializer" }] }),
    within("projects[]", PREBUILDS),
  ),
  "ProjectService/UpdateProjects": built(
    (world) => ({ projects: [projectUpdate(world), { projectId: world.project, name: "" }] }),
    within("projects[]", PROJECT_UPDATE),
  ),
  "ProjectService/CreateProjectFromEnvironment": built(
    (world) => ({ environmentId: world.environment, annotations: { "example.org/team": "shop" } }),
    { environmentId: "environment" },
  ),
  "ProjectService/GetProject": built((world) => ({ projectId: world.project }), { projectId: "project" }),
  "ProjectService/UpdateProject": built(projectUpdate, PROJECT_UPDATE),
  "ProjectService/ListProjects": built(() => counted, {
    "filter.projectIds[]": "project",
    "filter.runnerIds[]": "runner",
    "filter.creatorIds[]": "user",
  }),
  "ProjectService/DeleteProject": built((world) => ({ projectId: world.project }), { projectId: "project" }),
  "ResourceService/PreviewChanges": built(changes),
  "ResourceService/ApplyChanges": built(changes),

  "ProjectService/ListProjectEnvironmentClasses": built((world) => ({ projectId: world.project, ...page }), {
    projectId: "project",
  }),
  "ProjectService/UpdateProjectEnvironmentClasses": built(
    (world) => ({
      projectId: world.project,
      projectEnvironmentClasses: [{ environmentClassId: world.environmentClass }, { localRunner: true }],
    }),
    { projectId: "project", "projectEnvironmentClasses[].environmentClassId": "environmentClass" },
  ),

  "RunnerConfigurationService/CreateHostAuthenticationToken": built(
    (world) => ({
      runnerId: world.runner,
      host: "Git.Example.org",
      token: "a credential",
      refreshToken: "another",
      expiresAt: "2999-12-31T00:00:00Z",
      scopes: ["repository"],
      integrationId: world.integration,
      subject: { id: world.user, principal: "PRINCIPAL_USER" },
    }),
    { runnerId: "runner", userId: "member", integrationId: "integration", "subject.id": "user" },
  ),
  "RunnerConfigurationService/GetHostAuthenticationToken": built((world) => ({ id: world.hostToken }), {
    id: "hostToken",
  }),
  "RunnerConfigurationService/ListHostAuthenticationTokens": built(() => page, {
    "filter.runnerId": "runner",
    "filter.userId": "user",
    "filter.subjectId": "user",
  }),
  "RunnerConfigurationService/UpdateHostAuthenticationToken": built(
    (world) => ({ id: world.hostToken, token: "a newer credential", scopes: ["repository", "user"] }),
    { id: "hostToken" },
  ),
  "RunnerConfigurationService/DeleteHostAuthenticationToken": built((world) => ({ id: world.hostToken }), {
    id: "hostToken",
  }),
  "RunnerConfigurationService/CreateEnvironmentClass": built(
    (world) => ({
      runnerId: world.runner,
      displayName: "Large",
      description: "32 processors",
      configuration: [{ key: "processors", value: "32" }],
    }),
    { runnerId: "runner" },
  ),
  "RunnerConfigurationService/GetEnvironmentClass": built(
    (world) => ({ environmentClassId: world.environmentClass }),
    { environmentClassId: "environmentClass" },
  ),
  "RunnerConfigurationService/ListEnvironmentClasses": built(() => page, { "filter.runnerIds[]": "runner" }),
  "RunnerConfigurationService/UpdateEnvironmentClass": built(
    (world) => ({ environmentClassId: world.environmentClass, displayName: "Renamed", enabled: false }),
    { environmentClassId: "environmentClass" },
  ),

  "RunnerService/CreateRunner": built(() => ({ name: "In the cellar", kind: "RUNNER_KIND_REMOTE" })),
  "RunnerService/GetRunner": built((world) => ({ runnerId: world.runner }), { runnerId: "runner" }),
  "RunnerService/ListRunners": built(() => page, { "filter.creatorIds[]": "user" }),
  "RunnerService/UpdateRunner": built(
    (world) => ({
      runnerId: world.runner,
      name: "Renamed",
      spec: { desiredPhase: "RUNNER_PHASE_INACTIVE" },
    }),
    { runnerId: "runner" },
  ),
  "RunnerService/DeleteRunner": built((world) => ({ runnerId: world.runner, force: true }), {
    runnerId: "runner",
  }),
  "RunnerService/CreateRunnerToken": built((world) => ({ runnerId: world.runner }), { runnerId: "runner" }),
  "RunnerService/ParseContextURL": built(
    () => ({ contextUrl: "https://git.example.org/team/app/pull/7/files" }),
    { runnerId: "runner" },
  ),
  // No runner listens in a world.
  "RunnerService/CheckRepositoryAccess": {
    ...built((world) => ({ runnerId: world.runner, repositoryUrl: "https://git.example.org/team/app.git" }), {
      runnerId: "runner",
    }),
    refusal: [400, "failed_precondition"],
  },

  "SecretService/CreateSecret": built(
    (world) => ({
      name: "NPM_TOKEN",
      value: "a secret value",
      environmentVariable: true,
      scope: { projectId: world.project },
    }),
    {
      "scope.projectId": "project",
      "scope.userId": "user",
      "scope.organizationId": "organization",
      "scope.serviceAccountId": "serviceAccount",
    },
  ),
  "SecretService/UpdateSecretValue": built(
    (world) => ({ secretId: world.secret, value: "a newer secret value" }),
    { secretId: "secret" },
  ),
  "SecretService/ListSecrets": built(() => page, {
    "filter.projectIds[]": "project",
    "filter.scope.projectId": "project",
    "filter.scope.userId": "user",
    "filter.scope.organizationId": "organization",
    "filter.scope.serviceAccountId": "serviceAccount",
  }),
  "SecretService/DeleteSecret": built((world) => ({ secretId: world.secret }), { secretId: "secret" }),

  "SecurityService/CreateSecurityPolicy": built(
    (world) => ({ organizationId: world.organization, ...securityPolicy }),
    { organizationId: "organization" },
  ),
  "SecurityService/GetSecurityPolicy": built((world) => ({ securityPolicyId: world.securityPolicy }), {
    securityPolicyId: "securityPolicy",
  }),
  "SecurityService/ListSecurityPolicies": built(() => page, {
    "filter.organizationId": "organization",
    "filter.securityPolicyIds[]": "securityPolicy",
  }),
  "SecurityService/UpdateSecurityPolicy": built(
    (world) => ({ securityPolicyId: world.securityPolicy, metadata: { name: "Renamed" } }),
    { securityPolicyId: "securityPolicy" },
  ),
  "SecurityService/DeleteSecurityPolicy": built((world) => ({ securityPolicyId: world.securityPolicy }), {
    securityPolicyId: "securityPolicy",
  }),

  "ServiceAccountService/CreateServiceAccount": built(() => ({
    name: "Robot",
    description: "opens pull requests",
    validUntil: "2999-12-31T00:00:00Z",
  })),
  "ServiceAccountService/ListServiceAccounts": built(() => page, {
    "filter.serviceAccountIds[]": "serviceAccount",
  }),
  "ServiceAccountService/DeleteServiceAccount": built(
    (world) => ({ serviceAccountId: world.serviceAccount }),
    { serviceAccountId: "serviceAccount" },
  ),
  "ServiceAccountService/CreateServiceAccountToken": built(
    (world) => ({ serviceAccountId: world.serviceAccount, description: "nightly", validFor: "86400s" }),
    { serviceAccountId: "serviceAccount" },
  ),
  "ServiceAccountService/ListServiceAccountTokens": built(
    (world) => ({ serviceAccountId: world.serviceAccount, ...page }),
    { serviceAccountId: "serviceAccount" },
  ),
  "ServiceAccountService/DeleteServiceAccountToken": built(
    (world) => ({ serviceAccountTokenId: world.serviceAccountToken }),
    { serviceAccountTokenId: "serviceAccountToken" },
  ),
  "ServiceAccountService/CreateServiceAccountTrust": built(
    (world) => ({
      serviceAccountId: world.serviceAccount,
      issuer: "https://ci.example.org",
      audience: "chartroom",
      conditions: [{ claim: "sub", value: "repo:acme/app:*" }],
    }),
    { serviceAccountId: "serviceAccount" },
  ),
  "ServiceAccountService/ListServiceAccountTrusts": built(
    (world) => ({ serviceAccountId: world.serviceAccount, ...page }),
    { serviceAccountId: "serviceAccount" },
  ),
  "ServiceAccountService/DeleteServiceAccountTrust": built(
    (world) => ({ serviceAccountTrustId: world.serviceAccountTrust }),
    { serviceAccountTrustId: "serviceAccountTrust" },
  ),

  "UserService/GetAuthenticatedUser": built(() => ({})),
  "UserService/GetUser": built((world) => ({ userId: world.member }), { userId: "member" }),
  "UserService/SetSuspended": built((world) => ({ userId: world.member, suspended: true }), {
    userId: "member",
  }),
  "UserService/CreatePersonalAccessToken": built(
    (world) => ({ userId: world.user, description: "nightly report", validFor: "86400s", readOnly: true }),
    { userId: "user" },
  ),
  "UserService/ListPersonalAccessTokens": built(() => page, { "filter.userIds[]": "user" }),
  "UserService/RenewPersonalAccessToken": built(
    (world) => ({ personalAccessTokenId: world.token, validFor: "7776000s" }),
    { personalAccessTokenId: "token" },
  ),
  "UserService/ListSessions": built(() => page),
  "UserService/RevokeSession": built((world) => ({ sessionId: world.signInSession }), {
    sessionId: "signInSession",
  }),
  "UserService/DeletePersonalAccessToken": built((world) => ({ personalAccessTokenId: world.token }), {
    personalAccessTokenId: "token",
  }),

  ...WORKFLOW_OPERATIONS,
  ...WORK_OPERATIONS,
};
