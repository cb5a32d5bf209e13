/**
 * The release in which members watch events too: each event names the creator and owner of its
 * resource.
 */
export const name = "0010-event-facts";

/**
 * Rows of the audit trail stay as they are: their hashes cover the names that they store, which the
 * contract's new numbers do not change. Old events of removed tokens keep the type `token`, and
 * those of other removed resources stay without an owner: only administrators receive them.
 */
export const statements = `
alter table event add column creator_id text;
alter table event add column owner_id text;
alter table event add column environment_id text;

drop trigger event_is_not_updated;
update event set resource_type = 'personal_token', creator_id = token.subject_id, owner_id = token.subject_id
from token
where event.resource_type = 'token' and token.id = event.resource_id and token.kind = 'personal';
update event set resource_type = 'service_account_token', owner_id = token.subject_id
from token
where event.resource_type = 'token' and token.id = event.resource_id and token.kind = 'service_account';
update event set owner_id = host_token.subject_id
from host_token
where event.resource_type = 'host_token' and host_token.id = event.resource_id;
update event set
  creator_id = agent_execution.creator_id,
  owner_id = agent_execution.creator_id,
  environment_id = agent_execution.environment_id
from agent_execution
where event.resource_type = 'agent_execution' and agent_execution.id = event.resource_id;
update event set environment_id = resource_id where resource_type = 'environment';
create trigger event_is_not_updated before update on event
begin select raise(abort, 'event rows are never changed'); end;
`;
