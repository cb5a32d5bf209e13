/** Pull requests that people opened in environments, and approvals of pushes. */
export const name = "0040-push";

/** A column that may be null now takes a new table; its triggers are of the form of 0016-organization-storage. */
export const statements = `
alter table approval add column environment_id text;
create index approval_by_environment on approval (environment_id) where environment_id is not null;

create table pull_request_next (
  id text primary key,
  organization_id text not null references organization (id),
  workflow_id text not null,
  execution_id text not null,
  action_id text references workflow_action (id) on delete cascade,
  environment_id text not null,
  agent_execution_id text,
  owner_id text,
  owner_principal integer,
  host text not null,
  repository text not null,
  identity text not null,
  number integer not null,
  head_sha text not null,
  state integer not null,
  source_set_by text not null,
  changed_at integer not null,
  seen_at integer,
  next_poll_at integer,
  failures integer not null default 0,
  memory text not null default '{}',
  body text not null,
  unique (action_id, host, repository, number)
) strict;
insert into pull_request_next (
  id, organization_id, workflow_id, execution_id, action_id, environment_id, host, repository, identity, number, head_sha, state,
  source_set_by, changed_at, seen_at, next_poll_at, failures, memory, body
)
select
  id, organization_id, workflow_id, execution_id, action_id, environment_id, host, repository, identity, number, head_sha, state,
  source_set_by, changed_at, seen_at, next_poll_at, failures, memory, body
from pull_request;
drop table pull_request;
alter table pull_request_next rename to pull_request;
create index pull_request_by_id on pull_request (organization_id, id);
create index pull_request_by_workflow on pull_request (workflow_id);
create index pull_request_by_execution on pull_request (execution_id, id);
create index pull_request_by_environment on pull_request (environment_id, id);
create index pull_request_by_identity on pull_request (organization_id, identity, number);
create index pull_request_by_poll on pull_request (next_poll_at) where next_poll_at is not null;
create index pull_request_by_run on pull_request (agent_execution_id, id) where agent_execution_id is not null;

create trigger pull_request_is_counted_in after insert on pull_request
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger pull_request_is_counted_anew after update of memory, body on pull_request
when (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger pull_request_is_counted_out after delete on pull_request
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
