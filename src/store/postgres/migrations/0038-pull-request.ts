/** Pull requests that actions opened, which are followed at their hosts. */
export const name = "0038-pull-request";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table pull_request (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  workflow_id text collate "C" not null,
  execution_id text collate "C" not null,
  action_id text collate "C" not null references workflow_action (id) on delete cascade deferrable,
  environment_id text collate "C" not null,
  host text collate "C" not null,
  repository text collate "C" not null,
  identity text collate "C" not null,
  number bigint not null,
  head_sha text collate "C" not null,
  state bigint not null,
  source_set_by text collate "C" not null,
  changed_at bigint not null,
  seen_at bigint,
  next_poll_at bigint,
  failures bigint not null default 0,
  memory text collate "C" not null default '{}',
  body text collate "C" not null,
  unique (action_id, host, repository, number)
);
create index pull_request_by_id on pull_request (organization_id, id);
create index pull_request_by_workflow on pull_request (workflow_id);
create index pull_request_by_execution on pull_request (execution_id, id);
create index pull_request_by_environment on pull_request (environment_id, id);
create index pull_request_by_identity on pull_request (organization_id, identity, number);
create index pull_request_by_poll on pull_request (next_poll_at) where next_poll_at is not null;

create function pull_request_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.memory) + octet_length(new.body)
  where organization_id = new.organization_id;
  return new;
end $$;
create trigger pull_request_is_counted_in after insert on pull_request
  for each row execute function pull_request_is_counted_in();
create function pull_request_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.memory) + octet_length(new.body) <> octet_length(old.memory) + octet_length(old.body) then
    update organization_storage
    set bytes = bytes + octet_length(new.memory) + octet_length(new.body)
      - octet_length(old.memory) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger pull_request_is_counted_again after update of memory, body on pull_request
  for each row execute function pull_request_is_counted_again();
create function pull_request_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.memory) - octet_length(old.body)
  where organization_id = old.organization_id;
  return new;
end $$;
create trigger pull_request_is_counted_out after delete on pull_request
  for each row execute function pull_request_is_counted_out();
`;
