import { create } from "@bufbuild/protobuf";
import { type AgentCodeContext, AgentCodeContextSchema, type PullRequest } from "#gen/service/v1/agent_pb.js";
import type {
  WorkflowAction,
  WorkflowExecution,
  WorkflowExecutionAction,
  WorkflowExecutionTrigger,
  WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../../error.ts";
import { remoteForms, repositoryName } from "../../source/remote.ts";

/** The values that an action is created from. */
export interface ActionSource {
  readonly name: string;
  /** Undefined for an empty workspace. */
  readonly context: AgentCodeContext | undefined;
}

/** Results of the look-ups that a context needs. */
export interface ContextData {
  /** Names of the existing projects, by id. */
  readonly projectNames: ReadonlyMap<string, string>;
  /** Clone URLs that the search for repositories found, in the host's order. */
  readonly cloneUrls: readonly string[];
}

/** Maximum number of steps of an action (contract, WorkflowAction.steps). */
const MAX_STEPS = 50;

/**
 * Returns the sources of an execution's actions, in order: one for each distinct project or
 * repository, or one for an agent's prompt.
 */
export function actionSources(
  { context, trigger }: Pick<WorkflowExecutionTrigger, "context" | "trigger">,
  { projectNames, cloneUrls }: ContextData,
): ActionSource[] {
  const pullRequest = trigger.case === "pullRequest" ? trigger.value : undefined;
  switch (context?.context.case) {
    case "projects":
      return unique(context.context.value.projectIds).map((id) => ({
        name: projectNames.get(id) ?? id,
        context: codeContext({ case: "projectId", value: id }, pullRequest),
      }));
    case "repositories": {
      const { repositorySelector: selector, environmentClassId } = context.context.value;
      const remotes = selector.case === "repositoryUrls" ? selector.value.repoUrls : cloneUrls;
      return unique(remotes).map((remote) => ({
        name: repositoryName(remote) || remote,
        context: contextOfRemote(remote, environmentClassId, pullRequest),
      }));
    }
    case "agent":
      return [{ name: "agent", context: pullRequest && codeContext({ case: undefined }, pullRequest) }];
    default:
      throw new Error("an execution has a context of projects, repositories or an agent");
  }
}

/**
 * Returns the remote that the environment of an action over a repository is cloned from, as the
 * workflow spells it: the scp form and the URL made of it may lead to different folders. Undefined
 * for other actions.
 */
export function remoteOfAction(
  { spec }: WorkflowExecution,
  action: WorkflowExecutionAction,
): string | undefined {
  const code = action.spec?.context?.context;
  if (code?.case !== "contextUrl") return undefined;
  const url = code.value.url;
  const context = spec?.trigger?.context?.context;
  if (context?.case !== "repositories") return url;
  const { repositorySelector: selector } = context.value;
  if (selector.case !== "repositoryUrls") return url;
  return selector.value.repoUrls.find((each) => remoteForms(each).includes(url)) ?? url;
}

/**
 * Returns the search for repositories that a context asks for; undefined for a context without one.
 */
export function searchOf(
  context: WorkflowTriggerContext | undefined,
): { readonly host: string; readonly query: string } | undefined {
  if (context?.context.case !== "repositories") return undefined;
  const { repositorySelector: selector } = context.context.value;
  if (selector.case !== "repoSelector") return undefined;
  return { host: selector.value.scmHost.toLowerCase(), query: selector.value.repoSearchString };
}

/**
 * Requires that the steps are within the limit; an agent's prompt is a step of its own, before the
 * workflow's.
 * @throws DomainError VALUE_UNUSABLE when there are more steps than an action may have
 */
export function requireStepLimit(
  { context }: WorkflowTriggerContext,
  action: WorkflowAction | undefined,
): void {
  if (context.case !== "agent" || (action?.steps.length ?? 0) < MAX_STEPS) return;
  throw valueUnusable(
    "action.steps",
    `the prompt of an agent context is a step too: with one, an action has at most ${MAX_STEPS - 1} others`,
  );
}

function contextOfRemote(
  remote: string,
  environmentClassId: string,
  pullRequest: PullRequest | undefined,
): AgentCodeContext {
  // The scp form is not a URL, and readers may check the field against its rule.
  const url = remoteForms(remote).at(-1) ?? remote;
  return codeContext({ case: "contextUrl", value: { url, environmentClassId } }, pullRequest);
}

type Context =
  | { case: "projectId"; value: string }
  | { case: "contextUrl"; value: { url: string; environmentClassId: string } }
  | { case: undefined };

function codeContext(context: Context, pullRequest: PullRequest | undefined): AgentCodeContext {
  return create(AgentCodeContextSchema, { context, ...(pullRequest && { pullRequest }) });
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
