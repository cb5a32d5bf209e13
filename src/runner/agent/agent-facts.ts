import { writeFile } from "node:fs/promises";
import { toJsonString } from "@bufbuild/protobuf";
import type { AgentWork } from "#gen/runner/v1/work_pb.js";
import { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import type { AgentPolicy } from "#gen/service/v1/organization_pb.js";
import { resolveCommitAuthor } from "../git/commit-author.ts";
import { commandEnvironment } from "../process/command.ts";
import { mountSecrets } from "../process/work-secrets.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Workspace } from "../steps/workspace.ts";
import { type InputLine, type InputSettings, modeName, settingsOf } from "./agent-input-encoding.ts";
import type { AgentState } from "./agent-state.ts";

/** The organization's policies for agents. Only the agent's own program can enforce them. */
export interface AgentPolicies {
  /** True if it may not use the Model Context Protocol. */
  readonly mcpDisabled: boolean;
  /** Commands that it must not execute. */
  readonly commandDenyList: readonly string[];
  /** True if it gets no source-control tools. */
  readonly scmToolsDisabled: boolean;
  /** The id of the group whose members' agents alone get these tools; empty when all agents get them. */
  readonly scmToolsAllowedGroupId: string;
}

/** A turn of a conversation. */
export interface ForkPoint {
  /** The first run of the conversation. */
  readonly conversationId: string;
  /** The run of the turn; empty before the first turn. */
  readonly runId: string;
  /** An input of the turn; empty before the first turn. */
  readonly inputId: string;
}

/** The facts about its execution that an agent's program gets when it starts. */
export interface AgentFacts {
  readonly runId: string;
  /** The run that this one resumes; empty when it resumes none. */
  readonly resumedFrom: string;
  /** The first run of the conversation. The agent stores the conversation under this id. */
  readonly conversationId: string;
  /** The turn after which this run forks another conversation; undefined for a run that is no fork. */
  readonly forkedFrom: ForkPoint | undefined;
  readonly sessionId: string;
  readonly parentRunId: string;
  /** The ids of the sub-agent executions that it has already started. */
  readonly subagentRunIds: readonly string[];
  readonly mode: string;
  readonly goal: string;
  readonly settings: InputSettings;
  readonly policies: AgentPolicies;
}

export function toAgentFacts(
  { agentExecution, conversationId, fork }: AgentWork,
  policy: AgentPolicy | undefined,
): AgentFacts {
  const { id = "", metadata, spec, status } = agentExecution ?? {};
  return {
    runId: id,
    resumedFrom: metadata?.resumedFrom ?? "",
    conversationId: conversationId || id,
    forkedFrom: fork && {
      conversationId: fork.conversationId,
      runId: fork.agentExecutionId,
      inputId: fork.inputId,
    },
    sessionId: metadata?.sessionId ?? "",
    parentRunId: metadata?.parentExecutionId ?? "",
    subagentRunIds: status?.subagents.map((subagent) => subagent.id) ?? [],
    mode: modeName(status?.mode ?? 0),
    goal: status?.goal?.objective ?? "",
    settings: spec?.extAgentSettings ? settingsOf(spec.extAgentSettings) : {},
    policies: policiesOf(policy),
  };
}

function policiesOf(policy: AgentPolicy | undefined): AgentPolicies {
  const scmToolsAllowedGroupId = policy?.scmToolsAllowedGroupId ?? "";
  return {
    mcpDisabled: policy?.mcpDisabled ?? false,
    commandDenyList: policy?.commandDenyList ?? [],
    // The server sends the group's id only to agents of users who are not its members.
    scmToolsDisabled: (policy?.scmToolsDisabled ?? false) || scmToolsAllowedGroupId !== "",
    scmToolsAllowedGroupId,
  };
}

/**
 * Returns the first line that is sent to an agent that speaks JSON lines.
 * @param starts see AgentState.starts
 */
export function startLine(facts: AgentFacts, starts: number): InputLine {
  return { type: "start", ...facts, starts };
}

/**
 * Returns the complete environment of an agent's program: the secrets, then the variables
 * of its registration, then the runner's own variables, which override both.
 */
export async function agentEnvironmentOf(
  { tools, work }: Assignment,
  agentWork: AgentWork,
  { facts, workspace, state }: { facts: AgentFacts; workspace: Workspace; state: AgentState },
): Promise<Record<string, string>> {
  const { environment, variables, agentExecution } = agentWork;
  const { name, email } = resolveCommitAuthor(environment, tools.serverUrl);
  const { policies, settings } = facts;
  const files: Record<string, string> = {};
  const pullRequest = agentExecution?.spec?.codeContext?.pullRequest;
  if (pullRequest) {
    files.CHARTROOM_PULL_REQUEST = state.pullRequestFile;
    await writeFile(
      files.CHARTROOM_PULL_REQUEST,
      toJsonString(PullRequestSchema, pullRequest, { alwaysEmitImplicit: true }),
    );
  }
  return commandEnvironment(tools.programs, workspace.home, {
    ...(await mountSecrets(work, state.secretsFolder)),
    ...variables,
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    CHARTROOM_URL: tools.serverUrl,
    CHARTROOM_ENVIRONMENT_ID: environment?.id ?? "",
    CHARTROOM_ENVIRONMENT_TOKEN: work.environmentToken,
    ...(agentWork.traceparent !== undefined && { TRACEPARENT: agentWork.traceparent }),
    CHARTROOM_AGENT_EXECUTION_ID: facts.runId,
    CHARTROOM_AGENT_RESUMED_FROM: facts.resumedFrom,
    CHARTROOM_AGENT_CONVERSATION_ID: facts.conversationId,
    CHARTROOM_AGENT_SESSION_ID: facts.sessionId,
    CHARTROOM_AGENT_MODE: facts.mode,
    ...settingVariables(settings),
    CHARTROOM_AGENT_MCP_DISABLED: String(policies.mcpDisabled),
    CHARTROOM_AGENT_COMMAND_DENY_LIST: JSON.stringify(policies.commandDenyList),
    CHARTROOM_AGENT_SCM_TOOLS_DISABLED: String(policies.scmToolsDisabled),
    CHARTROOM_AGENT_SCM_TOOLS_ALLOWED_GROUP_ID: policies.scmToolsAllowedGroupId,
    ...files,
  });
}

/** Returns the settings as environment variables. An empty variable leaves the choice to the agent's program. */
export function settingVariables({
  model,
  reasoningEffort,
  serviceTier,
}: InputSettings): Record<string, string> {
  return {
    CHARTROOM_AGENT_MODEL: model === undefined ? "" : String(model),
    CHARTROOM_AGENT_REASONING_EFFORT: reasoningEffort ?? "",
    CHARTROOM_AGENT_SERVICE_TIER: serviceTier ?? "",
  };
}
