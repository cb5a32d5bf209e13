/** Secrets of organizations, projects, users and service accounts; their values are sealed. */
export const name = "0030-secret";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table secret (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  owner_kind text collate "C" not null,
  owner_id text collate "C" not null,
  name text collate "C" not null,
  value_bytes bigint not null,
  key_id text collate "C" not null,
  sealed bytea not null,
  body text collate "C" not null,
  unique (owner_id, name)
);
create index secret_by_organization on secret (organization_id, id);
create index secret_by_key on secret (key_id);

create function secret_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.sealed) + octet_length(new.body)
  where organization_id = new.organization_id;
  return new;
end $$;
create trigger secret_is_counted_in after insert on secret for each row execute function secret_is_counted_in();
create function secret_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.sealed) + octet_length(new.body) <> octet_length(old.sealed) + octet_length(old.body) then
    update organization_storage
    set bytes = bytes + octet_length(new.sealed) + octet_length(new.body)
      - octet_length(old.sealed) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger secret_is_counted_again after update of sealed, body on secret
  for each row execute function secret_is_counted_again();
create function secret_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.sealed) - octet_length(old.body)
  where organization_id = old.organization_id;
  return new;
end $$;
create trigger secret_is_counted_out after delete on secret for each row execute function secret_is_counted_out();
`;
