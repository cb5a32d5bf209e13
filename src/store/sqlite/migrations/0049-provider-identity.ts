/** Adds the identities of accounts at sign-in providers, and of a session that began there, the identity and the provider's session. */
export const name = "0049-provider-identity";

export const statements = `
create table provider_identity (
  id text primary key,
  account_id text not null references account (id),
  issuer text not null,
  subject text not null,
  email text not null,
  email_verified integer not null,
  created_at integer not null,
  unique (issuer, subject)
) strict;
create index provider_identity_by_account on provider_identity (account_id);
alter table token add column identity_id text;
alter table token add column provider_session_id text;
create index token_by_identity on token (identity_id) where identity_id is not null;
`;
