/** Adds trusts of service accounts in issuers of tokens, and the tokens of those that were exchanged. */
export const name = "0063-service-account-trust";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table service_account_trust (
  id text primary key,
  organization_id text not null references organization (id),
  service_account_id text not null,
  creator_account_id text,
  body text not null
) strict;
create index service_account_trust_by_account on service_account_trust (service_account_id, id);
create index service_account_trust_by_id on service_account_trust (organization_id, id);
create table machine_token_use (
  hash blob primary key,
  expires_at integer not null
) strict;
create index machine_token_use_by_end on machine_token_use (expires_at);

create trigger service_account_trust_is_counted_in after insert on service_account_trust
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger service_account_trust_is_counted_anew after update of body on service_account_trust
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger service_account_trust_is_counted_out after delete on service_account_trust
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
