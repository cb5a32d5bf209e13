/** Rows of approvals; ../schema.ts combines them and explains how to read them. */

export interface ApprovalTable {
  id: string;
  organization_id: string;
  /** ApprovalState by number. */
  phase: number;
  /** Id of the agent execution that asks; null for a step that asks directly. */
  agent_execution_id: string | null;
  /** Names the tool call or question within its agent execution. */
  tool_call_id: string | null;
  digest: string;
  /** Id of the workflow execution that the request belongs to; null outside of workflows. */
  workflow_execution_id: string | null;
  /** Id of the action whose step asks directly; null for everything else. */
  action_id: string | null;
  /** Position of the approval step, which asks once; null also for a push, which a step may request again. */
  step_index: number | null;
  /** Id of the environment whose branch a person wants to push; null for everything else. */
  environment_id: string | null;
  /** The subject that started the agent execution, is the executor of the workflow, or requests a push. */
  creator_id: string;
  creator_principal: number;
  /** 1 when every member may read it. */
  is_shared: number;
  expires_at: number;
  /** Approval. */
  body: string;
}

/** The users and groups that an approval names as deciders. */
export interface ApprovalDeciderTable {
  approval_id: string;
  /** Id of a user or of a group. */
  user_id: string;
}
