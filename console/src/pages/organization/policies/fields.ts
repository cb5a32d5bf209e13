/** How a field is shown and entered. */
export type FieldKind =
  | { readonly case: "switch" }
  | { readonly case: "count" }
  /** A duration, typed in a unit with its seconds; empty means none. */
  | { readonly case: "span"; readonly unit: "hours" | "days"; readonly seconds: number }
  | { readonly case: "text" }
  /** A list, one entry per line. */
  | { readonly case: "lines" }
  | { readonly case: "choice"; readonly choices: readonly (readonly [value: string, label: string])[] }
  /** A message, typed as JSON; empty means unset. */
  | { readonly case: "json"; readonly example?: string };

/** A field of OrganizationPolicies in the form. */
export interface PolicyField {
  /** Path in JSON names. */
  readonly path: string;
  readonly label: string;
  /** Where the field applies. */
  readonly binds: string;
  readonly kind: FieldKind;
}

const HOURS = { case: "span", unit: "hours", seconds: 3_600 } as const;
const DAYS = { case: "span", unit: "days", seconds: 86_400 } as const;
const SWITCH = { case: "switch" } as const;
const COUNT = { case: "count" } as const;
const TEXT = { case: "text" } as const;
const LINES = { case: "lines" } as const;
const JSON_TEXT: FieldKind = { case: "json" };

const NEW = "Applies when an environment is created.";
const RUNNERS =
  "Sent to runners with each piece of work. A runner fails work whose policies it cannot enforce.";
const AGENTS = "Applies when workflows are saved or started, and when agents are started.";

/** The fields of the form by group; docs/policies.md describes each in the same way. */
export const POLICY_GROUPS: readonly { readonly title: string; readonly fields: readonly PolicyField[] }[] = [
  {
    title: "Environments",
    fields: [
      {
        path: "maximumEnvironmentTimeout",
        label: "Longest idle time, in hours",
        binds: `${NEW} If a request sets none, this is used.`,
        kind: HOURS,
      },
      {
        path: "maximumEnvironmentLifetime",
        label: "Longest lifetime, in days",
        binds: "Set when an environment is created; a running environment is stopped when it ends.",
        kind: DAYS,
      },
      {
        path: "maximumEnvironmentLifetimeStrict",
        label: "No start after the lifetime has ended",
        binds: "Applies when an environment is started.",
        kind: SWITCH,
      },
      {
        path: "maximumRunningEnvironmentsPerUser",
        label: "Running environments per person (0: no limit)",
        binds: "Applies when an environment is created or started.",
        kind: COUNT,
      },
      {
        path: "maximumEnvironmentsPerUser",
        label: "Environments per person (0: no limit)",
        binds: NEW,
        kind: COUNT,
      },
      {
        path: "archiveEnvironmentsAfter",
        label: "Archive after days stopped",
        binds: "Done in the background, in organizations that the operator has marked as enterprise.",
        kind: DAYS,
      },
      {
        path: "deleteArchivedEnvironmentsAfter",
        label: "Delete after days archived",
        binds: "Done in the background.",
        kind: DAYS,
      },
      {
        path: "allowLocalRunners",
        label: "Allow environments on local runners",
        binds: "Applies when an environment is created and when a local runner asks for work.",
        kind: SWITCH,
      },
      {
        path: "defaultEnvironmentImage",
        label: "Default image, if the repository names none",
        binds: RUNNERS,
        kind: TEXT,
      },
      {
        path: "disableFromScratch",
        label: "Members must start from a repository",
        binds: "Applies when members create environments or workflows without a repository.",
        kind: SWITCH,
      },
      {
        path: "membersRequireProjects",
        label: "Members must start from a project",
        binds: NEW,
        kind: SWITCH,
      },
      {
        path: "membersCreateProjects",
        label: "Members may create projects",
        binds: "Applies when a project is created.",
        kind: SWITCH,
      },
    ],
  },
  {
    title: "Ports and editors",
    fields: [
      {
        path: "portSharingDisabled",
        label: "Ports are visible only to their creator",
        binds: NEW,
        kind: SWITCH,
      },
      {
        path: "maxPortAdmissionLevel",
        label: "Widest access to a port",
        binds: NEW,
        kind: {
          case: "choice",
          choices: [
            ["ADMISSION_LEVEL_UNSPECIFIED", "No limit"],
            ["ADMISSION_LEVEL_CREATOR_ONLY", "Its creator"],
            ["ADMISSION_LEVEL_ORGANIZATION", "The organization"],
            ["ADMISSION_LEVEL_EVERYONE", "Everyone"],
          ],
        },
      },
      {
        path: "allowedEditorIds",
        label: "Editors that projects may recommend, one per line (empty: all)",
        binds: "Applies when a project’s editors are changed.",
        kind: LINES,
      },
      {
        path: "defaultEditorId",
        label: "Default editor",
        binds: "Must be one of the allowed editors.",
        kind: TEXT,
      },
      {
        path: "editorVersionRestrictions",
        label: "Versions of editors",
        binds: "Applies when a project’s editors are changed.",
        kind: JSON_TEXT,
      },
    ],
  },
  {
    title: "Agents",
    fields: [
      {
        path: "agentPolicy.allowedAgentIds",
        label: "Allowed agents, one id per line (empty: all)",
        binds: AGENTS,
        kind: LINES,
      },
      {
        path: "agentPolicy.goalModeDisabled",
        label: "No goals",
        binds: "Applies when an agent is started with a goal or given one.",
        kind: SWITCH,
      },
      {
        path: "agentPolicy.maxSubagentsPerEnvironment",
        label: "Concurrent sub-agents per run (0: 5)",
        binds: "Applies when an agent starts another.",
        kind: COUNT,
      },
      {
        path: "agentPolicy.conversationSharingPolicy",
        label: "Who can read other people’s runs",
        binds: "Applies when runs are read. Administrators always can.",
        kind: {
          case: "choice",
          choices: [
            ["CONVERSATION_SHARING_POLICY_UNSPECIFIED", "Administrators only"],
            ["CONVERSATION_SHARING_POLICY_DISABLED", "Administrators only (explicit)"],
            ["CONVERSATION_SHARING_POLICY_ORGANIZATION", "Everyone in the organization"],
          ],
        },
      },
      { path: "agentPolicy.mcpDisabled", label: "No Model Context Protocol", binds: RUNNERS, kind: SWITCH },
      {
        path: "agentPolicy.commandDenyList",
        label: "Commands that agents must not run, one per line",
        binds: RUNNERS,
        kind: LINES,
      },
      {
        path: "agentPolicy.scmToolsDisabled",
        label: "No source-control tools",
        binds: RUNNERS,
        kind: SWITCH,
      },
      {
        path: "agentPolicy.scmToolsAllowedGroupId",
        label: "Id of the only group whose agents get source-control tools",
        binds: RUNNERS,
        kind: TEXT,
      },
      {
        path: "agentPolicy.allowedExtAgentReasoningEfforts",
        label: "Allowed reasoning efforts, one per line (empty: all)",
        binds: AGENTS,
        kind: LINES,
      },
      {
        path: "agentPolicy.allowedExtAgentServiceTiers",
        label: "Allowed service tiers, one per line (empty: all)",
        binds: AGENTS,
        kind: LINES,
      },
      { path: "agentPolicy.extAgentModelPolicy", label: "Models", binds: AGENTS, kind: JSON_TEXT },
    ],
  },
  {
    title: "Approvals and pushes",
    fields: [
      {
        path: "agentPolicy.approvals",
        label: "Approvals that agents and steps need",
        binds: "Applies when an agent asks, and when workflows with pull requests are saved or started.",
        kind: JSON_TEXT,
      },
      {
        path: "agentPolicy.pushRules",
        label: "Branches that may be pushed to",
        binds: "Applies to each push.",
        kind: JSON_TEXT,
      },
    ],
  },
  {
    title: "Programs, files and network",
    fields: [
      { path: "egress", label: "Hosts that isolated work may reach", binds: RUNNERS, kind: JSON_TEXT },
      { path: "vetoExecPolicy", label: "Programs that must not start", binds: RUNNERS, kind: JSON_TEXT },
      { path: "vetoFilePolicy", label: "Files that must not be accessed", binds: RUNNERS, kind: JSON_TEXT },
      { path: "securityAgentPolicy", label: "Security agents", binds: RUNNERS, kind: JSON_TEXT },
      {
        path: "securityPolicyId",
        label: "Id of the security policy of new environments",
        binds: `${NEW} Runners enforce it.`,
        kind: TEXT,
      },
    ],
  },
  {
    title: "People",
    fields: [
      {
        path: "restrictAccountCreationToScim",
        label: "Accounts are created only by SCIM",
        binds: "Applies when someone joins by an invite or a sign-in provider.",
        kind: SWITCH,
      },
    ],
  },
  {
    title: "Retention",
    fields: [
      {
        path: "retention",
        label: "Retention of ended resources",
        binds:
          "Permanently removed within an hour. Set days and a count for executions, agentExecutions, triggerEntries and events. A kind with neither is kept forever; an omitted kind follows the settings of the installation.",
        kind: { case: "json", example: '{"executions": {"days": 90, "count": 1000}}' },
      },
    ],
  },
];

/** Every field of the form. */
export const POLICY_FIELDS: readonly PolicyField[] = POLICY_GROUPS.flatMap(({ fields }) => fields);
