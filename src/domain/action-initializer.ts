import { create } from "@bufbuild/protobuf";
import type { PullRequest } from "#gen/service/v1/agent_pb.js";
import {
  type EnvironmentInitializer,
  EnvironmentInitializerSchema,
  GitInitializer_CloneTargetMode as Mode,
} from "#gen/service/v1/environment_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { remoteForms } from "./remote.ts";
import { repositoryIdentity } from "./repository-identity.ts";

/**
 * What the environment of an action over a repository is filled with. In the
 * repository of the pull request whose event started the execution that is the
 * pull request's revision.
 *
 * @returns undefined for an action over a project, whose own initializer holds, and for an empty workspace
 */
export function actionInitializer(
  execution: WorkflowExecution,
  { spec }: WorkflowExecutionAction,
): EnvironmentInitializer | undefined {
  const context = spec?.context?.context;
  if (context?.case !== "contextUrl") return undefined;
  const remoteUri = writtenRemote(execution, context.value.url);
  const target = targetOf(remoteUri, spec?.context?.pullRequest);
  return create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri, ...target } } }],
  });
}

/** The remote as the workflow names it: the scp form and the URL made of it need not lead to one folder. */
function writtenRemote({ spec }: WorkflowExecution, url: string): string {
  const context = spec?.trigger?.context?.context;
  if (context?.case !== "repositories") return url;
  const { repositorySelector: selector } = context.value;
  if (selector.case !== "repositoryUrls") return url;
  return selector.value.repoUrls.find((each) => remoteForms(each).includes(url)) ?? url;
}

function targetOf(remoteUri: string, pullRequest: PullRequest | undefined) {
  const cloneUrl = pullRequest?.repository?.cloneUrl ?? "";
  const isItsRepository = repositoryIdentity(cloneUrl) === repositoryIdentity(remoteUri);
  if (!pullRequest || cloneUrl === "" || !isItsRepository) return { targetMode: Mode.REMOTE_HEAD };
  // The revision goes before the branch, which may be in a fork or gone.
  if (pullRequest.headSha !== "") {
    return { targetMode: Mode.REMOTE_COMMIT, cloneTarget: pullRequest.headSha };
  }
  if (pullRequest.fromBranch === "") return { targetMode: Mode.REMOTE_HEAD };
  return { targetMode: Mode.REMOTE_BRANCH, cloneTarget: pullRequest.fromBranch };
}
