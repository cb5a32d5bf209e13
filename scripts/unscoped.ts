/** Functions over rows that take neither a scope nor a handle, for one reason. */
interface Group {
  readonly reason: string;
  /** The files that may import them besides their own; every file where it is left out. */
  readonly callers?: RegExp;
  /** By name, what each is for. */
  readonly functions: Readonly<Record<string, string>>;
}

const STORE = /^src\/store\//;
const JOBS = /^src\/jobs\//;
const COMMANDS = /^src\/commands\//;

/** Every function of src/store/<area>/ over rows that takes neither a scope nor a handle: `npm run check` holds it. */
export const UNSCOPED: readonly Group[] = [
  {
    reason: "A credential or an address that was presented decides the scope.",
    functions: {
      countDeviceLogins: "logins of devices that wait, before anybody is known",
      countSignInAttempt: "codes that a person or a network has typed wrong, which belong to no login",
      findDeviceLogin: "the login of the device that has the code",
      findSignInAttempts: "how many codes a person or a network has typed wrong",
      findTrustsOf: "trusts of the service account that comes with a token of an issuer",
      insertMachineTokenUse: "a token of an issuer, which names no organization, is of use once",
      findUndecidedDeviceLogin: "the login that a typed code is for, before anybody has decided it",
      insertDeviceLogin: "a device asks before anybody is known",
      removeDeviceLogin: "the login of the device that has the code",
      updateDevicePoll: "the login of the device that has the code",
      findInviteByHash: "the invite that an account joins with, by its id, which is a secret",
      findWebhookSecrets: "what the signature of such a delivery is verified with",
      findTokenByHash: "authenticates a request",
      findTokenById: "authenticates again, for a stream that stays open, by the id of its token",
      findWorkflowOwner: "finds whose webhook a delivery is for, before its signature is verified",
      findAnyWorkflow: "finds whose webhook a delivery is for, before its signature is verified",
    },
  },
  {
    reason: "Jobs sweep all organizations; what they find names its organization.",
    callers: JOBS,
    functions: {
      findLaggingChains: "the export of the audit trail as it grows: every chain",
      findConfirmed: "the same",
      setConfirmed: "the same, when a target has it",
      findRowsAfter: "the same: the rows of a chain, of the installation's, too",
      findAgeingChains: "the removal of old rows of the audit trail: every chain",
      findAllSetPolicies: "policies that jobs apply",
      findDeletingWorkflows: "workflows to remove",
      findDuePrebuildSchedules: "projects whose prebuilds are due",
      findDuePullRequests: "pull requests whose time to be read has come",
      findDueSchedules: "time triggers that are due",
      findDueSubscriptions: "subscriptions to which events are to be sent",
      findDueTimers: "timers of agents that are due",
      findEndedQuestions: "questions about environments whose askers are gone",
      findExpiredApprovals: "approvals that nobody decided in time",
      findExpiredActions: "actions past their time",
      findExpiredLeases: "leases that ran out",
      findExpiredProgramTokens: "tokens of programs that expired",
      findHeldGroups: "work that is held for runners which keep its policies",
      findIdleLeases: "agents that wait and could give their slots back",
      findLongWaits: "work that waits for a runner for too long",
      findOldDeliveries: "deliveries of webhooks past their retention",
      findOldResponses: "stored responses past their retention",
      findOvertimePrebuilds: "prebuilds past their timeout",
      findPastLifetime: "environments past their lifetime",
      findProjectsToCount: "projects with uses to count",
      findRetainingOrganizations: "organizations, and how long each keeps what has ended",
      findRemovableProjects: "projects that nothing refers to any more",
      findSilentRunners: "runners that fell silent",
      findTokensToWarnOf: "tokens of people whose end is to be announced",
      findUncountedEnvironments: "uses of such a project",
      findUnexpandedExecutions: "executions without actions yet",
      hasEndedMachineTokenUses: "tokens of issuers that have ended, which belong to no organization",
      removeMachineTokenUses: "tokens of issuers that have ended, which belong to no organization",
      hasEndedDeviceLogins: "logins of devices that have ended, which belong to nobody",
      removeEndedDeviceLogins: "logins of devices that have ended, which belong to nobody",
      removeResponses:
        "prunes stored responses, also those of an earlier release, which name no organization",
    },
  },
  {
    reason: "Metrics and the doctor count the rows of the whole installation, and name none.",
    callers: /^src\/(metrics|commands\/doctor)\//,
    functions: { countInstallation: "what waits and what goes on, by kind and phase" },
  },
  {
    reason: "What a target of the export of the audit trail has not confirmed covers every chain.",
    callers: /^src\/(server-figures\.ts|metrics\/|commands\/doctor\/)/,
    functions: { findAuditLag: "the number of rows, and the time of the oldest" },
  },
  {
    reason: "Commands of the operator are about the whole installation.",
    callers: COMMANDS,
    functions: {
      countTokensUnderMac: "keys: whether an old key is still needed",
      findAccessTokens: "token list",
      findAnyToken: "token revoke, by id",
      findNamedKeyIds: "which keys any row needs, for doctor, too",
      findNewestAuditTime: "serve and doctor: whether the clock went back",
      findOrganizationsWithBytes: "organization list",
      findUnrecordedOrganizations: "serve: organizations of an earlier release",
      insertSubscription: "account subscribe",
      isUnused: "serve: whether sample data may be made next to the organization of a first start",
      recordInInstallation: "serve: records such an organization",
      removeOrganization: "organization remove",
      exportChains: "audit export",
      verifyChains: "audit verify",
    },
  },
  {
    reason: "What commands of the operator and the start of the server run through services.",
    callers:
      /^src\/(?:commands|services\/(?:agent\/agent-registry|runner\/(?:local-runner|host-token-reencryption)|workflow\/webhook-secret-reencryption|policy\/secret-value|access\/(?:organization-creation|event-subscription\/subscription-secrets)))\b/,
    functions: {
      hadOrganization: "serve: whether this is the first start",
      hasOrganization: "serve: whether this is the first start",
      findAgents: "agent list",
      findHostTokensUnderKey: "keys rotate",
      findMembership: "token create: a user by id",
      findOrganizations: "the local runner of each organization",
      findSecretsUnderKey: "keys rotate",
      findSubscriptionsUnderKey: "keys rotate",
      findUsers: "member list, and finding a user by address",
      findWebhookSecretsUnderKey: "keys rotate",
      insertAgent: "agent add, also of all organizations",
      insertOrganization: "organization create: there is no scope before",
      reencryptHostTokenSecrets: "keys rotate",
      reencryptSecretValue: "keys rotate",
      reencryptSubscription: "keys rotate",
      removeAgent: "agent remove, also of all organizations",
      replaceWebhookSecrets: "keys rotate",
      updateRegisteredAgent: "agent set, also of all organizations",
    },
  },
  {
    reason: "An account belongs to no organization: its rows, and what is its own in several.",
    functions: {
      cancelSubscriptions: "of a blocked account",
      findAccount: "an account by id",
      findAccountByEmail: "an account by address",
      findIdentities: "who an account is at sign-in providers",
      findIdentity: "whom a sign-in provider names",
      findProviderSessions: "sessions that a sign-in provider ends",
      insertIdentity: "the installation's record names it",
      updateIdentity: "the address that a sign-in provider names",
      findBlockReceipt: "what a block stopped",
      findMemberships: "the organizations of an account",
      findTokenIdsIn: "named tokens, in the organizations of an account alone",
      findUsersOfAccount: "its users, present and former",
      insertAccount: "the installation's record names it",
      updateAccount:
        "the installation's record names it; the caller has found that it belongs to one organization",
      insertBlockReceipt: "what a block stopped",
      removeBlockReceipt: "what a block stopped",
      updateAccountBlock: "blocks or unblocks",
    },
  },
  {
    reason: "Parts of functions of store/ that take a scope, or of the writer.",
    callers: STORE,
    functions: {
      addActionErrors: "part of updateAction",
      findAnchors: "what reads all chains: where each begins",
      findPositions: "what reads all chains: how far the export of each has got",
      buildRecord: "the writer: a change names its organization",
      changeCounts: "part of updateAction and insertActions",
      insertRecords: "the writer: a change names its organization",
    },
  },
];
