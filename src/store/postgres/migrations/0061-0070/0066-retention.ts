/** When retention has taken executions away. */
export const name = "0066-retention";

export const statements = `
alter table workflow_execution add column removed_at bigint;
alter table agent_execution add column removed_at bigint;
`;
