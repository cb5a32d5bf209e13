/** Approvals: what agents and steps of workflows ask people for, and who decides. */
export const name = "0023-approval";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table approval (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  phase bigint not null,
  agent_execution_id text collate "C" references agent_execution (id) on delete cascade deferrable,
  tool_call_id text collate "C",
  digest text collate "C" not null,
  workflow_execution_id text collate "C",
  action_id text collate "C" references workflow_action (id) on delete cascade deferrable,
  step_index bigint,
  creator_id text collate "C" not null,
  creator_principal bigint not null,
  is_shared bigint not null,
  expires_at bigint not null,
  body text collate "C" not null,
  unique (agent_execution_id, tool_call_id, digest),
  unique (action_id, step_index)
);
create index approval_by_id on approval (organization_id, id);
create index approval_by_phase on approval (organization_id, phase, id);
create index approval_by_expiry on approval (expires_at) where phase = 1;

create table approval_decider (
  approval_id text collate "C" not null references approval (id) on delete cascade deferrable,
  user_id text collate "C" not null,
  primary key (approval_id, user_id)
);

create function approval_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger approval_is_counted_in after insert on approval for each row execute function approval_is_counted_in();
create function approval_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger approval_is_counted_again after update of body on approval
  for each row execute function approval_is_counted_again();
create function approval_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger approval_is_counted_out after delete on approval for each row execute function approval_is_counted_out();
`;
