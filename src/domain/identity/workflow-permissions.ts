import {
  CREATORS,
  EVERY_RUNNER,
  MEMBERS,
  NOBODY,
  OWNED_BY_CREATOR,
  OWNED_OR_ADMINISTERED,
  OWNED_OR_USED,
  type Permission,
} from "./grants.ts";

const STARTED =
  "executions that the caller started, and those of workflows that it made or that a group of it has the role `admin` on";
const LEASED = "work that the runner holds the lease of";

/** Rows of the permissions table for workflows and the work of runners. */
export const WORKFLOW_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "WorkflowService/CreateWorkflow": {
    permission: "create_workflow",
    grants: MEMBERS,
    condition: "the organization's policies; the executor is the caller or a service account",
  },
  "WorkflowService/GetWorkflow": { permission: "get_workflow", grants: MEMBERS },
  "WorkflowService/ListWorkflows": { permission: "list_workflows", grants: MEMBERS },
  "WorkflowService/UpdateWorkflow": {
    permission: "update_workflow",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
    condition:
      "the organization's policies; the executor as in CreateWorkflow, or as it was; only administrators change what is done as another person",
  },
  "WorkflowService/DeleteWorkflow": {
    permission: "delete_workflow",
    grants: CREATORS,
    own: OWNED_OR_ADMINISTERED,
  },
  "WorkflowService/StartWorkflow": {
    permission: "start_workflow",
    grants: CREATORS,
    own: OWNED_OR_USED,
    condition:
      "what the request's context names can be used by the caller; only administrators give one of their own choice to a workflow that runs as another person",
  },
  "WorkflowService/PreviewWorkflow": { permission: "preview_workflow", grants: MEMBERS },
  "WorkflowService/ListWorkflowExecutions": { permission: "list_workflow_executions", grants: MEMBERS },
  "WorkflowService/GetWorkflowExecution": { permission: "get_workflow_execution", grants: MEMBERS },
  "WorkflowService/CancelWorkflowExecution": {
    permission: "cancel_workflow_execution",
    grants: CREATORS,
    own: STARTED,
  },
  "WorkflowService/RetryFailedActions": {
    permission: "start_workflow",
    grants: CREATORS,
    own: OWNED_OR_USED,
  },
  "WorkflowService/ListWorkflowExecutionActions": {
    permission: "list_workflow_execution_actions",
    grants: MEMBERS,
  },
  "WorkflowService/GetWorkflowExecutionAction": {
    permission: "get_workflow_execution_action",
    grants: MEMBERS,
  },
  "WorkflowService/CancelWorkflowExecutionAction": {
    permission: "cancel_workflow_execution",
    grants: CREATORS,
    own: STARTED,
  },
  "WorkflowService/ListWorkflowExecutionOutputs": {
    permission: "list_workflow_execution_outputs",
    grants: MEMBERS,
  },
  "WorkflowService/ListPullRequests": { permission: "list_pull_requests", grants: MEMBERS },
  "WorkflowService/StreamActionLogs": { permission: "stream_action_logs", grants: MEMBERS },
  "WorkflowService/GetWorkflowWebhookSecret": {
    permission: "get_workflow_webhook_secret",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "WorkflowService/RotateWorkflowWebhookSecret": {
    permission: "rotate_workflow_webhook_secret",
    grants: CREATORS,
    own: OWNED_BY_CREATOR,
  },
  "WorkflowService/GetWorkflowExecutionSummary": {
    permission: "get_workflow_execution_summary",
    grants: MEMBERS,
  },
  "WorkflowService/ListWorkflowTriggerEvents": {
    permission: "list_workflow_trigger_events",
    grants: MEMBERS,
  },
  "WorkflowService/RedeliverWorkflowTriggerEvent": {
    permission: "start_workflow",
    grants: CREATORS,
    own: OWNED_OR_USED,
  },

  "WorkService/Register": {
    permission: "register_runner",
    grants: { ...NOBODY, exchange: "own" },
    own: "the runner that the token was made for",
  },
  "WorkService/BeginInstance": { permission: "work", grants: EVERY_RUNNER, own: "the runner itself" },
  "WorkService/Heartbeat": { permission: "work", grants: EVERY_RUNNER, own: "the runner itself" },
  "WorkService/LeaseWork": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "work that the runner can serve",
  },
  "WorkService/RenewLease": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "WorkService/ReportProgress": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "WorkService/FinishWork": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "WorkService/ReportWorks": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "WorkService/RenewLeases": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "WorkService/GetHostCredential": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "credentials of the executor of work that the runner holds the lease of",
  },
  "AgentWorkService/StreamInputs": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/ReportAgent": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/ReportAgents": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/StartSubagent": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/RequestApproval": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/StartStepAgent": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "AgentWorkService/GetStepAgent": { permission: "work", grants: EVERY_RUNNER, own: LEASED },
  "EnvironmentWorkService/ReportEnvironmentChanges": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "environments on the runner",
  },
  "EnvironmentWorkService/ReportEnvironmentConnections": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "environments on the runner",
  },
  "EnvironmentWorkService/WatchRequests": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "questions for the runner",
  },
  "EnvironmentWorkService/AnswerRequest": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "questions for the runner",
  },
  "EnvironmentWorkService/GetQuestionCredential": {
    permission: "work",
    grants: EVERY_RUNNER,
    own: "credentials of the one who asks the runner for a push or to read a remote, while it does",
  },
};
