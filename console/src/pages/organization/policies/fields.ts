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

const NEW = "Binds where an environment is created.";
const RUNNERS = "Handed to runners with each piece of work, which fail what they cannot keep to.";
const AGENTS = "Binds where workflows are written and started, and agents started.";

/** The fields of the form by group; docs/policies.md describes each in the same way. */
export const POLICY_GROUPS: readonly { readonly title: string; readonly fields: readonly PolicyField[] }[] = [
  {
    title: "Environments",
    fields: [
      {
        path: "maximumEnvironmentTimeout",
        label: "Longest idle time, in hours",
        binds: `${NEW} One that asks for none gets this.`,
        kind: HOURS,
      },
      {
        path: "maximumEnvironmentLifetime",
        label: "Longest lifetime, in days",
        binds: "Set where an environment is created; one that runs at its end is stopped.",
        kind: DAYS,
      },
      {
        path: "maximumEnvironmentLifetimeStrict",
        label: "No start after the lifetime",
        binds: "Binds where an environment is started.",
        kind: SWITCH,
      },
      {
        path: "maximumRunningEnvironmentsPerUser",
        label: "Running environments of one person, 0 for any number",
        binds: "Binds where an environment is created or started.",
        kind: COUNT,
      },
      {
        path: "maximumEnvironmentsPerUser",
        label: "Environments of one person, 0 for any number",
        binds: NEW,
        kind: COUNT,
      },
      {
        path: "archiveEnvironmentsAfter",
        label: "Archive after so many days stopped",
        binds: "Done in the background, in organizations that the operator marked as enterprise.",
        kind: DAYS,
      },
      {
        path: "deleteArchivedEnvironmentsAfter",
        label: "Delete so many days after archival",
        binds: "Done in the background.",
        kind: DAYS,
      },
      {
        path: "allowLocalRunners",
        label: "Local runners may take environments",
        binds: "Binds where an environment is created, and where a local runner asks for work.",
        kind: SWITCH,
      },
      {
        path: "defaultEnvironmentImage",
        label: "Image where the repository names none",
        binds: RUNNERS,
        kind: TEXT,
      },
      {
        path: "disableFromScratch",
        label: "Members start from repositories only",
        binds: "Binds where members create environments, and workflows over a prompt.",
        kind: SWITCH,
      },
      { path: "membersRequireProjects", label: "Members start from projects only", binds: NEW, kind: SWITCH },
      {
        path: "membersCreateProjects",
        label: "Members may create projects",
        binds: "Binds where a project is created.",
        kind: SWITCH,
      },
    ],
  },
  {
    title: "Ports and editors",
    fields: [
      { path: "portSharingDisabled", label: "Ports are their creator’s alone", binds: NEW, kind: SWITCH },
      {
        path: "maxPortAdmissionLevel",
        label: "Widest admission to a port",
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
        label: "Editors that projects may recommend, one a line; none for all",
        binds: "Binds where a project’s editors are changed.",
        kind: LINES,
      },
      {
        path: "defaultEditorId",
        label: "Default editor",
        binds: "One of the allowed ones.",
        kind: TEXT,
      },
      {
        path: "editorVersionRestrictions",
        label: "Versions of editors",
        binds: "Binds where a project’s editors are changed.",
        kind: JSON_TEXT,
      },
    ],
  },
  {
    title: "Agents",
    fields: [
      {
        path: "agentPolicy.allowedAgentIds",
        label: "Agents by their ids, one a line; none for all",
        binds: AGENTS,
        kind: LINES,
      },
      {
        path: "agentPolicy.goalModeDisabled",
        label: "No goals",
        binds: "Binds where an agent is started with a goal or given one.",
        kind: SWITCH,
      },
      {
        path: "agentPolicy.maxSubagentsPerEnvironment",
        label: "Sub-agents of a run at a time, 0 for 5",
        binds: "Binds where an agent starts another.",
        kind: COUNT,
      },
      {
        path: "agentPolicy.conversationSharingPolicy",
        label: "Who reads the runs of others",
        binds: "Binds where runs are read. Administrators always may.",
        kind: {
          case: "choice",
          choices: [
            ["CONVERSATION_SHARING_POLICY_UNSPECIFIED", "Administrators alone"],
            ["CONVERSATION_SHARING_POLICY_DISABLED", "Administrators alone, as chosen"],
            ["CONVERSATION_SHARING_POLICY_ORGANIZATION", "Everybody in the organization"],
          ],
        },
      },
      { path: "agentPolicy.mcpDisabled", label: "No Model Context Protocol", binds: RUNNERS, kind: SWITCH },
      {
        path: "agentPolicy.commandDenyList",
        label: "Commands that agents must not execute, one a line",
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
        label: "The one group whose agents get source-control tools, by its id",
        binds: RUNNERS,
        kind: TEXT,
      },
      {
        path: "agentPolicy.allowedExtAgentReasoningEfforts",
        label: "Reasoning efforts, one a line; none for all",
        binds: AGENTS,
        kind: LINES,
      },
      {
        path: "agentPolicy.allowedExtAgentServiceTiers",
        label: "Service tiers, one a line; none for all",
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
        label: "What agents and steps ask people for",
        binds: "Binds where an agent asks, and where workflows with pull requests are written and started.",
        kind: JSON_TEXT,
      },
      {
        path: "agentPolicy.pushRules",
        label: "Branches that may be pushed to",
        binds: "Binds at the moment of a push.",
        kind: JSON_TEXT,
      },
    ],
  },
  {
    title: "Programs, files and network",
    fields: [
      { path: "egress", label: "Hosts that isolated work may reach", binds: RUNNERS, kind: JSON_TEXT },
      { path: "vetoExecPolicy", label: "Programs that may not start", binds: RUNNERS, kind: JSON_TEXT },
      { path: "vetoFilePolicy", label: "Files that may not be touched", binds: RUNNERS, kind: JSON_TEXT },
      { path: "securityAgentPolicy", label: "Security agents", binds: RUNNERS, kind: JSON_TEXT },
      {
        path: "securityPolicyId",
        label: "Security policy of new environments, by its id",
        binds: `${NEW} Runners keep to it.`,
        kind: TEXT,
      },
    ],
  },
  {
    title: "People",
    fields: [
      {
        path: "restrictAccountCreationToScim",
        label: "SCIM alone brings people in",
        binds: "Binds where somebody joins by an invite or a sign-in provider.",
        kind: SWITCH,
      },
    ],
  },
  {
    title: "Retention",
    fields: [
      {
        path: "retention",
        label: "How long what has ended is kept",
        binds:
          "Removed for good within an hour. Days and a count for executions, agentExecutions, triggerEntries and events; one without either is kept for good, one that is left out as the settings of the installation say.",
        kind: { case: "json", example: '{"executions": {"days": 90, "count": 1000}}' },
      },
    ],
  },
];

/** Every field of the form. */
export const POLICY_FIELDS: readonly PolicyField[] = POLICY_GROUPS.flatMap(({ fields }) => fields);
