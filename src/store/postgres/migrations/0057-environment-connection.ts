/** The connections that work in environments has asked for, as runners report them. */
export const name = "0057-environment-connection";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table environment_egress (
  environment_id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  creator_id text collate "C" not null,
  creator_principal bigint not null,
  action_id text collate "C" references workflow_action (id) on delete cascade deferrable,
  refused bigint not null,
  allowed bigint not null,
  left_out bigint not null
);
create index environment_egress_by_organization on environment_egress (organization_id);
create index environment_egress_by_action on environment_egress (action_id) where action_id is not null;

create table environment_connection (
  environment_id text collate "C" not null references environment_egress (environment_id) on delete cascade deferrable,
  organization_id text collate "C" not null references organization (id) deferrable,
  place bigint not null,
  id text collate "C" not null,
  body text collate "C" not null,
  primary key (environment_id, place),
  unique (environment_id, id)
);

create function environment_connection_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger environment_connection_is_counted_in after insert on environment_connection
  for each row execute function environment_connection_is_counted_in();
create function environment_connection_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger environment_connection_is_counted_again after update of body on environment_connection
  for each row execute function environment_connection_is_counted_again();
create function environment_connection_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger environment_connection_is_counted_out after delete on environment_connection
  for each row execute function environment_connection_is_counted_out();
`;
