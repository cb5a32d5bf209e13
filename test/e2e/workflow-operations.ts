import { built, counted, type Ids, type Operation, page, within } from "./operation.ts";
import type { World } from "./world.ts";

const CONTEXT: Ids = {
  "projects.projectIds[]": "project",
  "repositories.environmentClassId": "environmentClass",
};
const WRITTEN: Ids = {
  agentId: "agent",
  "executor.id": "serviceAccount",
  "triggers[].pullRequest.webhookId": "webhook",
  "triggers[].pullRequest.integrationId": "integration",
  ...within("triggers[].context", CONTEXT),
  "action.steps[].approval.deciders.userIds[]": "user",
  "action.steps[].approval.deciders.groupIds[]": "group",
  "report.steps[].approval.deciders.userIds[]": "user",
  "report.steps[].approval.deciders.groupIds[]": "group",
};

const repositories = ({ environmentClass }: World) => ({
  repositories: {
    repositoryUrls: { repoUrls: ["git@git.example.org:team/hello.git"] },
    environmentClassId: environmentClass,
  },
});

const approval = ({ user }: World) => ({
  approval: {
    message: "Go on at level {{ .Parameters.level }}?",
    deciders: { who: "WHO_USERS", userIds: [user] },
    timeout: "3600s",
  },
});

const written = (world: World) => ({
  description: "Keeps the code tidy",
  triggers: [
    { manual: {}, context: repositories(world) },
    {
      time: {
        cronExpression: "0 4 * * 1-5",
        timeZone: "Europe/Berlin",
        overlapPolicy: "OVERLAP_POLICY_SKIP",
      },
      context: { projects: { projectIds: [world.project] } },
    },
  ],
  action: {
    limits: { maxParallel: 2, maxTotal: 10, perExecution: { maxTime: "600s" } },
    steps: [
      approval(world),
      { task: { command: "make lint LEVEL={{ .Parameters.level }}" } },
      { pullRequest: { title: "Tidy up", branch: "tidy/{{ .Parameters.level }}", draft: true } },
    ],
  },
  report: {
    limits: { maxParallel: 1, maxTotal: 1 },
    steps: [
      approval(world),
      {
        report: {
          outputs: [
            {
              title: "Score",
              key: "score",
              command: "cat score",
              integer: { min: 0 },
              acceptanceCriteria: "this <= 100",
            },
          ],
        },
      },
    ],
  },
  parameters: [{ key: "level", description: "How strict to be", defaultValue: "high" }],
  executor: { id: world.serviceAccount, principal: "PRINCIPAL_SERVICE_ACCOUNT" },
  extAgentSettings: { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_HIGH" },
});

/** Every operation of WorkflowService. */
export const WORKFLOW_OPERATIONS: Readonly<Record<string, Operation>> = {
  "WorkflowService/CreateWorkflow": built((world) => ({ name: "Nightly", ...written(world) }), WRITTEN),
  "WorkflowService/GetWorkflow": built((world) => ({ workflowId: world.workflow }), {
    workflowId: "workflow",
  }),
  "WorkflowService/UpdateWorkflow": built(
    (world) => ({ workflowId: world.workflow, name: "Renamed", ...written(world) }),
    { workflowId: "workflow", ...WRITTEN },
  ),
  "WorkflowService/ListWorkflows": built(() => ({ ...counted, sort: { field: "SORT_FIELD_NAME" } }), {
    "filter.workflowIds[]": "workflow",
    "filter.creatorIds[]": "user",
  }),
  "WorkflowService/DeleteWorkflow": built((world) => ({ workflowId: world.workflow, force: true }), {
    workflowId: "workflow",
  }),
  "WorkflowService/GetWorkflowWebhookSecret": built((world) => ({ workflowId: world.workflow }), {
    workflowId: "workflow",
  }),
  "WorkflowService/RotateWorkflowWebhookSecret": built((world) => ({ workflowId: world.workflow }), {
    workflowId: "workflow",
  }),
  "WorkflowService/GetWorkflowExecutionSummary": built(
    () => ({ filter: { dateRange: { startTime: "2020-01-01T00:00:00Z", endTime: "2999-01-01T00:00:00Z" } } }),
    { "filter.workflowIds[]": "workflow" },
  ),

  "WorkflowService/StartWorkflow": built(
    (world) => ({
      workflowId: world.workflow,
      parameters: { branch: "main" },
      contextOverride: repositories(world),
    }),
    { workflowId: "workflow", ...within("contextOverride", CONTEXT) },
  ),
  "WorkflowService/PreviewWorkflow": built(
    (world) => ({
      workflowId: world.workflow,
      parameters: { branch: "main" },
      contextOverride: repositories(world),
      schedules: [{ cronExpression: "0 0 29 2 *", timeZone: "Europe/Berlin" }],
    }),
    { workflowId: "workflow", ...within("contextOverride", CONTEXT) },
  ),
  "WorkflowService/RetryFailedActions": built((world) => ({ workflowExecutionId: world.workflowExecution }), {
    workflowExecutionId: "workflowExecution",
  }),
  "WorkflowService/ListWorkflowExecutions": built(() => page, {
    "filter.workflowExecutionIds[]": "workflowExecution",
    "filter.workflowIds[]": "workflow",
  }),
  "WorkflowService/GetWorkflowExecution": built(
    (world) => ({ workflowExecutionId: world.workflowExecution }),
    { workflowExecutionId: "workflowExecution" },
  ),
  "WorkflowService/CancelWorkflowExecution": built(
    (world) => ({ workflowExecutionId: world.workflowExecution }),
    { workflowExecutionId: "workflowExecution" },
  ),
  "WorkflowService/ListWorkflowExecutionActions": built(() => page, {
    "filter.workflowExecutionActionIds[]": "workflowAction",
    "filter.workflowExecutionIds[]": "workflowExecution",
    "filter.workflowIds[]": "workflow",
  }),
  "WorkflowService/GetWorkflowExecutionAction": built(
    (world) => ({ workflowExecutionActionId: world.workflowAction }),
    { workflowExecutionActionId: "workflowAction" },
  ),
  "WorkflowService/CancelWorkflowExecutionAction": built(
    (world) => ({ workflowExecutionActionId: world.workflowAction }),
    { workflowExecutionActionId: "workflowAction" },
  ),
  "WorkflowService/ListWorkflowExecutionOutputs": built(() => page, {
    "filter.workflowExecutionIds[]": "workflowExecution",
  }),
  "WorkflowService/ListPullRequests": built(() => page, {
    "filter.workflowExecutionIds[]": "workflowExecution",
    "filter.workflowExecutionActionIds[]": "workflowAction",
    "filter.environmentIds[]": "environment",
    "filter.agentExecutionIds[]": "agentExecution",
  }),
  "WorkflowService/StreamActionLogs": built(
    (world) => ({ workflowExecutionActionId: world.workflowAction }),
    { workflowExecutionActionId: "workflowAction" },
  ),
  "WorkflowService/ListWorkflowTriggerEvents": built(() => page, { "filter.workflowIds[]": "workflow" }),
  "WorkflowService/RedeliverWorkflowTriggerEvent": built(
    (world) => ({ triggerEventId: world.triggerEvent }),
    { triggerEventId: "triggerEvent" },
  ),
};
