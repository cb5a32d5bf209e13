/** The changes in the repositories of environments, as runners reported it last. */
export const name = "0036-environment-changes";

/** Returns the triggers that count a table's bodies, in the form of 0019-baseline. */
const counting = (table: string) => `
create function ${table}_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger ${table}_is_counted_in after insert on ${table} for each row execute function ${table}_is_counted_in();
create function ${table}_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger ${table}_is_counted_again after update of body on ${table}
  for each row execute function ${table}_is_counted_again();
create function ${table}_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger ${table}_is_counted_out after delete on ${table} for each row execute function ${table}_is_counted_out();
`;

export const statements = `
create table environment_changes (
  environment_id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  creator_id text collate "C" not null,
  creator_principal bigint not null,
  action_id text collate "C" references workflow_action (id) on delete cascade deferrable,
  refreshed_at bigint not null,
  version bigint not null,
  body text collate "C" not null,
  diffs text collate "C" not null
);
create index environment_changes_by_organization on environment_changes (organization_id);
create index environment_changes_by_action on environment_changes (action_id) where action_id is not null;

create table environment_file_diff (
  environment_id text collate "C" not null references environment_changes (environment_id) on delete cascade deferrable,
  organization_id text collate "C" not null references organization (id) deferrable,
  base bigint not null,
  place bigint not null,
  body text collate "C" not null,
  primary key (environment_id, base, place)
);
${counting("environment_changes")}
${counting("environment_file_diff")}
`;
