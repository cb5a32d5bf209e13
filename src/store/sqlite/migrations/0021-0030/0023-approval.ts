/** Approvals: what agents and steps of workflows ask people for, and who decides. */
export const name = "0023-approval";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table approval (
  id text primary key,
  organization_id text not null references organization (id),
  phase integer not null,
  agent_execution_id text references agent_execution (id) on delete cascade,
  tool_call_id text,
  digest text not null,
  workflow_execution_id text,
  action_id text references workflow_action (id) on delete cascade,
  step_index integer,
  creator_id text not null,
  creator_principal integer not null,
  is_shared integer not null,
  expires_at integer not null,
  body text not null,
  unique (agent_execution_id, tool_call_id, digest),
  unique (action_id, step_index)
) strict;
create index approval_by_id on approval (organization_id, id);
create index approval_by_phase on approval (organization_id, phase, id);
create index approval_by_expiry on approval (expires_at) where phase = 1;

create table approval_decider (
  approval_id text not null references approval (id) on delete cascade,
  user_id text not null,
  primary key (approval_id, user_id)
) strict, without rowid;

create trigger approval_is_counted_in after insert on approval
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger approval_is_counted_anew after update of body on approval
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger approval_is_counted_out after delete on approval
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
