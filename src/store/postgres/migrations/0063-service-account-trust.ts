/** Adds trusts of service accounts in issuers of tokens, and the tokens of those that were exchanged. */
export const name = "0063-service-account-trust";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table service_account_trust (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  service_account_id text collate "C" not null,
  creator_account_id text collate "C",
  body text collate "C" not null
);
create index service_account_trust_by_account on service_account_trust (service_account_id, id);
create index service_account_trust_by_id on service_account_trust (organization_id, id);
create table machine_token_use (
  hash bytea primary key,
  expires_at bigint not null
);
create index machine_token_use_by_end on machine_token_use (expires_at);

create function service_account_trust_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger service_account_trust_is_counted_in after insert on service_account_trust
  for each row execute function service_account_trust_is_counted_in();
create function service_account_trust_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger service_account_trust_is_counted_again after update of body on service_account_trust
  for each row execute function service_account_trust_is_counted_again();
create function service_account_trust_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger service_account_trust_is_counted_out after delete on service_account_trust
  for each row execute function service_account_trust_is_counted_out();
`;
