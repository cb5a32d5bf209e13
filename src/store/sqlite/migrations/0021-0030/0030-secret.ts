/** Secrets of organizations, projects, users and service accounts; their values are sealed. */
export const name = "0030-secret";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table secret (
  id text primary key,
  organization_id text not null references organization (id),
  owner_kind text not null,
  owner_id text not null,
  name text not null,
  value_bytes integer not null,
  key_id text not null,
  sealed blob not null,
  body text not null,
  unique (owner_id, name)
) strict;
create index secret_by_organization on secret (organization_id, id);
create index secret_by_key on secret (key_id);

create trigger secret_is_counted_in after insert on secret
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger secret_is_counted_anew after update of sealed, body on secret
when (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger secret_is_counted_out after delete on secret
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
