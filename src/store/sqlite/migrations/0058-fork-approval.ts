/** Approvals of whole executions, which events of pull requests from forks began. */
export const name = "0058-fork-approval";

export const statements = `
create index approval_by_execution on approval (workflow_execution_id) where action_id is null and agent_execution_id is null;
`;
