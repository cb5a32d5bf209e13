/**
 * Rows of agents and their executions; ../schema.ts combines them and explains how to read them.
 */

/** A program that the operator registered. */
export interface AgentTable {
  id: string;
  /** Null for an agent that every organization of the installation sees. */
  organization_id: string | null;
  name: string;
  /**
   * 1 for the agent that is used when a request names none: at most one per organization, and one for the
   * installation.
   */
  is_default: number;
  /** AgentForm by number. */
  form: number;
  /** JSON list: the program and its arguments. */
  command: string;
  /** JSON list of McpServer, see src/domain/agent/mcp/mcp-server.ts. */
  mcp_servers: string;
  /** Agent, `own` left out. */
  body: string;
}

export interface AgentExecutionTable {
  id: string;
  organization_id: string;
  agent_id: string;
  creator_id: string;
  creator_principal: number;
  /** Id of the account that it runs for; null for a service account's. */
  account_id: string | null;
  /** AgentExecutionRole by number. */
  role: number;
  project_id: string | null;
  /** Id of the environment that it works in, which may have been removed. */
  environment_id: string;
  /** 1 when the environment was created for it, and is deleted with it. */
  made_environment: number;
  /** Id of the runner that the request named; null follows the environment. */
  runner_id: string | null;
  session_id: string;
  /** Id of the execution that started it as a sub-agent. */
  parent_id: string | null;
  /** Key chosen by the parent, which makes a repeated start idempotent. */
  start_key: string | null;
  action_id: string | null;
  /** Attempt, step and output of the action that it works for, such as `1.0.`. */
  step_key: string | null;
  /** AgentExecution.Phase by number. */
  phase: number;
  desired_phase: number;
  queue_revision: number;
  /** Number of the newest output block; 0 before the first. */
  last_sequence: number;
  created_at: number;
  /** Time of the last change of the body or the progress. */
  changed_at: number;
  stopped_at: number | null;
  /** TurnOptions of its first turn, in JSON; null once a turn has used them. */
  first_turn: string | null;
  /** Id of the execution whose conversation it continues, which may have been removed; null for none. */
  earlier_id: string | null;
  /** Number of the last block before it in its conversation; 0 without an earlier execution. */
  earlier_sequence: number;
  /** 1 when it is a branch of the conversation, which the earlier execution may also continue. */
  is_fork: number;
  /** Set of RunOrigin by bits: who started the executions that it descends from; 0 unless it continues one. */
  origins: number;
  /** JSON of usage, mode and activity, which change often; merged into the status when it is read. */
  progress: string;
  body: string;
  /** Time at which retention hid it from all readers; its parts are removed in portions. Null for all others. */
  removed_at?: number | null;
}

export interface AgentExecutionAnnotationTable {
  execution_id: string;
  key: string;
  value: string;
}

/** The inputs of an execution: its queue, and the delivered ones. */
export interface AgentInputTable {
  execution_id: string;
  input_id: string;
  /** Order of arrival, from 1. */
  number: number;
  /** Order of delivery among those that are queued, and among those that were delivered. */
  place: number;
  /** AgentInputReceipt by number. */
  receipt: number;
  /** Fence of the lease under which it was delivered or seen; 0 before. */
  fence: number;
  /** 1 when it is delivered into the current turn. */
  steer: number;
  /** JSON of the options and settings of the turn that it begins. */
  turn: string;
  /** AgentInput without receipt and without the data of images. */
  body: string;
}

export interface AgentInputImageTable {
  execution_id: string;
  input_id: string;
  /** Position among the inputs of the message, from 0. */
  position: number;
  data: Uint8Array;
}

export interface AgentOutputTable {
  execution_id: string;
  sequence: number;
  /** The key of the blocks that it folds with, see src/domain/agent/agent-output-fold.ts; null for a block that folds with no other. */
  fold_key: string | null;
  /** AgentOutputBlock. */
  body: string;
}

/** Interests of executions; a row is removed when it fires. */
export interface AgentInterestTable {
  execution_id: string;
  interest_id: string;
  fires_at: number | null;
  sub_agent_id: string | null;
  user_message: number;
  environment_id: string | null;
  /** Empty for any phase. */
  environment_phase: string | null;
}

/** Drafts of reviews of the changes that executions have made. */
export interface AgentReviewDraftTable {
  id: string;
  organization_id: string;
  execution_id: string;
  /** Id of the only subject that sees it. */
  author_id: string;
  /** Principal by number. */
  author_principal: number;
  /** AgentReviewDraft. */
  body: string;
}
