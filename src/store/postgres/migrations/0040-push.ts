/** Pull requests that people opened in environments, and approvals of pushes. */
export const name = "0040-push";

export const statements = `
alter table approval add column environment_id text collate "C";
create index approval_by_environment on approval (environment_id) where environment_id is not null;

alter table pull_request alter column action_id drop not null;
alter table pull_request add column agent_execution_id text collate "C";
alter table pull_request add column owner_id text collate "C";
alter table pull_request add column owner_principal bigint;
create index pull_request_by_run on pull_request (agent_execution_id, id) where agent_execution_id is not null;
`;
