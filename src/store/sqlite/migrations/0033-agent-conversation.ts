/** Lets agent executions go on with the conversation of an earlier one. */
export const name = "0033-agent-conversation";

export const statements = `
alter table agent_execution add column earlier_id text;
alter table agent_execution add column earlier_sequence integer not null default 0;
alter table agent_execution add column is_fork integer not null default 0;
alter table agent_execution add column origins integer not null default 0;
`;
