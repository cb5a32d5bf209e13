import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, toJsonString } from "@bufbuild/protobuf";
import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import { ListWorkflowExecutionOutputsResponseSchema } from "#gen/service/v1/workflow_service_pb.js";
import { authorOf } from "../git/commit-author.ts";
import { cleanEnvironment } from "../process/command.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Workspace } from "./workspace.ts";

/**
 * All of the environment of an action's commands: the parameters, and after them
 * what no parameter may change. What may be long is in files beside the tree.
 */
export async function environmentOf(
  { tools, work }: Assignment,
  action: ActionWork,
  { folder, home }: Workspace,
): Promise<Record<string, string>> {
  const { name, email } = authorOf(action.environment, tools.serverUrl);
  const files: Record<string, string> = {};
  const json = { alwaysEmitImplicit: true };
  if (action.report) {
    files.CHARTROOM_OUTPUTS = join(folder, "outputs.json");
    const { outputs } = action;
    const message = create(ListWorkflowExecutionOutputsResponseSchema, { outputs });
    const text = toJsonString(ListWorkflowExecutionOutputsResponseSchema, message, json);
    await writeFile(files.CHARTROOM_OUTPUTS, text);
  }
  if (action.pullRequest) {
    files.CHARTROOM_PULL_REQUEST = join(folder, "pull-request.json");
    await writeFile(files.CHARTROOM_PULL_REQUEST, toJsonString(PullRequestSchema, action.pullRequest, json));
  }
  return cleanEnvironment(tools.programs, home, {
    ...action.variables,
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    CHARTROOM_URL: tools.serverUrl,
    CHARTROOM_ENVIRONMENT_ID: action.environment?.id ?? "",
    CHARTROOM_ENVIRONMENT_TOKEN: work.environmentToken,
    CHARTROOM_WORKFLOW_ID: action.workflowId,
    CHARTROOM_EXECUTION_ID: action.workflowExecutionId,
    CHARTROOM_ACTION_ID: action.actionId,
    ...files,
  });
}
