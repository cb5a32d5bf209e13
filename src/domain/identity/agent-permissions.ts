import { ADMINISTRATORS, CREATORS, MEMBERS, type Permission } from "./grants.ts";

const STARTED = "agent runs that the caller started";
const ADMINISTERED = `${STARTED}, and those that a group of it has the role \`admin\` on`;
const USED = `${STARTED}, and those that a group of it has the role \`use\` on`;
const USED_OR_ASSIGNED = `${USED}; a runner's: the agent runs on it`;
const SHARED =
  "what the organization's conversation sharing policy opens to the caller, and what is shared with a group of it";
const API_AGENTS = "while a runner of the organization allows agents that are defined by the API";
const SUBAGENTS = "an environment's: sub-agents of the agent run whose token it is, and nothing else";
const AUTHORS = "drafts of the caller itself";
const APPROVALS =
  "approvals of agent runs that the caller may read, those that name it as a decider, and those of steps of workflows";

/** Rows of the permissions table for agents and their executions. */
export const AGENT_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "AgentService/StartAgent": {
    permission: "start_agent",
    grants: { ...MEMBERS, environment: "own" },
    own: SUBAGENTS,
    condition:
      "the organization's policies; an environment that it names is one that the caller could start, and a run that it resumes one that the caller started; administrators: any",
  },
  "AgentService/ForkAgentExecution": {
    permission: "fork_agent_execution",
    grants: CREATORS,
    own: STARTED,
    condition: "the organization's policies; its environment is one that the caller could start",
  },
  "AgentService/SendToAgentExecution": {
    permission: "send_to_agent_execution",
    grants: { ...CREATORS, runner: "own" },
    own: USED_OR_ASSIGNED,
    condition: "none by the role of a group where the run's creator has secrets of its own",
  },
  "AgentService/GetAgentExecution": {
    permission: "get_agent_execution",
    grants: { ...MEMBERS, runner: "own" },
    own: "the agent runs on the runner",
    condition: SHARED,
  },
  "AgentService/ListAgentExecutions": {
    permission: "list_agent_executions",
    grants: MEMBERS,
    condition: SHARED,
  },
  "AgentService/StopAgentExecution": {
    permission: "stop_agent_execution",
    grants: CREATORS,
    own: ADMINISTERED,
  },
  "AgentService/DeleteAgentExecution": {
    permission: "delete_agent_execution",
    grants: CREATORS,
    own: ADMINISTERED,
  },
  "AgentService/WatchAgentExecution": {
    permission: "watch_agent_execution",
    grants: MEMBERS,
    condition: SHARED,
  },
  "AgentService/ListAgentOutputBlocks": {
    permission: "list_agent_output_blocks",
    grants: MEMBERS,
    condition: SHARED,
  },
  "AgentService/ListAgentInputs": { permission: "list_agent_inputs", grants: MEMBERS, condition: SHARED },
  "AgentReviewService/ListAgentReviews": {
    permission: "list_agent_reviews",
    grants: MEMBERS,
    condition: SHARED,
  },
  "AgentReviewService/CreateAgentReviewDraft": {
    permission: "create_agent_review_draft",
    grants: CREATORS,
    own: USED,
  },
  "AgentReviewService/UpdateAgentReviewDraft": {
    permission: "update_agent_review_draft",
    grants: CREATORS,
    own: USED,
    condition: AUTHORS,
  },
  "AgentReviewService/ListAgentReviewDrafts": {
    permission: "list_agent_review_drafts",
    grants: CREATORS,
    own: USED,
    condition: AUTHORS,
  },
  "AgentReviewService/DeleteAgentReviewDraft": {
    permission: "delete_agent_review_draft",
    grants: MEMBERS,
    condition: AUTHORS,
  },
  "ApprovalService/ListApprovals": {
    permission: "list_approvals",
    grants: MEMBERS,
    condition: APPROVALS,
  },
  "ApprovalService/GetApproval": { permission: "get_approval", grants: MEMBERS, condition: APPROVALS },
  "ApprovalService/DecideApproval": {
    permission: "decide_approval",
    grants: MEMBERS,
    condition:
      "whom the approval names: unless a policy or the workflow says otherwise, who started the run, and administrators",
  },
  "AgentService/ListAgents": { permission: "list_agents", grants: MEMBERS },
  "AgentService/CreateAgent": { permission: "create_agent", grants: ADMINISTRATORS, condition: API_AGENTS },
  "AgentService/UpdateAgent": { permission: "update_agent", grants: ADMINISTRATORS, condition: API_AGENTS },
  "AgentService/DeleteAgent": { permission: "delete_agent", grants: ADMINISTRATORS },
};
