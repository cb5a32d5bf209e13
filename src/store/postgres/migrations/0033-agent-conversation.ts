/** Lets agent executions go on with the conversation of an earlier one. */
export const name = "0033-agent-conversation";

export const statements = `
alter table agent_execution add column earlier_id text collate "C";
alter table agent_execution add column earlier_sequence bigint not null default 0;
alter table agent_execution add column is_fork bigint not null default 0;
alter table agent_execution add column origins bigint not null default 0;
`;
