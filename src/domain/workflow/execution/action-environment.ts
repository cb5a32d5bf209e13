import { create } from "@bufbuild/protobuf";
import type { PullRequest } from "#gen/service/v1/agent_pb.js";
import {
  type EnvironmentSpec,
  EnvironmentSpec_ContentSchema,
  EnvironmentSpec_MachineSchema,
  EnvironmentSpecSchema,
  type GitInitializer,
  GitInitializerSchema,
  GitInitializer_CloneTargetMode as Mode,
} from "#gen/service/v1/environment_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { specFromProject } from "../../environment/environment-from-project.ts";
import { repositoryIdentity } from "../../source/repository-identity.ts";
import { isFromFork } from "../trigger/fork-work.ts";
import { remoteOfAction } from "./workflow-expansion.ts";

/** Maximum length of an environment's name (contract, EnvironmentMetadata.name). */
const MAX_NAME_CHARACTERS = 80;

/** The values that the environment of an action is created from. */
export interface ActionEnvironmentTemplate {
  readonly execution: WorkflowExecution;
  readonly action: WorkflowExecutionAction;
  /** Project of the action's context; undefined without one. */
  readonly project: Project | undefined;
  /** Id of the class that the action was queued for; null for none. */
  readonly environmentClassId: string | null;
}

/**
 * Returns the spec of the environment of an action: from its project or repository, and empty
 * without either.
 * @throws DomainError PENDING_DELETION for a project that is marked for removal
 */
export function specOfAction({
  execution,
  action,
  project,
  environmentClassId,
}: ActionEnvironmentTemplate): EnvironmentSpec {
  const spec = create(EnvironmentSpecSchema);
  if (environmentClassId !== null) {
    spec.machine = create(EnvironmentSpec_MachineSchema, { class: environmentClassId });
  }
  if (project) {
    const fromProject = specFromProject(project, spec);
    // The action was queued without a class, so do not pin the project's first one: it may be disabled.
    if (environmentClassId === null) delete fromProject.machine;
    return fromProject;
  }
  const remoteUri = remoteOfAction(execution, action);
  if (remoteUri === undefined) return spec;
  const git = checkout(remoteUri, action.spec?.context?.pullRequest);
  const source = { case: "git", value: git } as const;
  spec.content = create(EnvironmentSpec_ContentSchema, { initializer: { specs: [{ spec: source }] } });
  return spec;
}

/** Returns the pull request whose event started an execution. */
export function pullRequestOfAction({ spec }: WorkflowExecution): PullRequest | undefined {
  const trigger = spec?.trigger?.trigger;
  return trigger?.case === "pullRequest" ? trigger.value : undefined;
}

/**
 * Returns whether a pull request from a fork, or of unknown origin, started an execution or the one that
 * it retries. Its work gets no secrets.
 */
export function isBegunByFork(execution: WorkflowExecution): boolean {
  const pullRequest = pullRequestOfAction(execution);
  return pullRequest !== undefined && isFromFork(pullRequest);
}

/** Returns the name of the environment of an action, for people. */
export function environmentNameOf({ metadata }: WorkflowExecutionAction): string {
  return [...(metadata?.actionName ?? "")].slice(0, MAX_NAME_CHARACTERS).join("");
}

/**
 * Returns the checkout of a repository: at its default branch, or at the newest commit of the pull
 * request if it is one of this repository. The commit is preferred to the branch, which may be in a
 * fork, or deleted after the merge.
 */
function checkout(remoteUri: string, pullRequest: PullRequest | undefined): GitInitializer {
  const initializer = create(GitInitializerSchema, { remoteUri });
  const identity = repositoryIdentity(remoteUri) ?? remoteUri;
  const cloneUrl = pullRequest?.repository?.cloneUrl ?? "";
  if (!pullRequest || identity !== (repositoryIdentity(cloneUrl) ?? cloneUrl)) return initializer;
  if (pullRequest.headSha !== "") {
    initializer.targetMode = Mode.REMOTE_COMMIT;
    initializer.cloneTarget = pullRequest.headSha;
  } else if (pullRequest.fromBranch !== "") {
    initializer.targetMode = Mode.REMOTE_BRANCH;
    initializer.cloneTarget = pullRequest.fromBranch;
  }
  return initializer;
}
