/** Adds the identities of accounts at sign-in providers, and of a session that began there, the identity and the provider's session. */
export const name = "0049-provider-identity";

export const statements = `
create table provider_identity (
  id text collate "C" primary key,
  account_id text collate "C" not null references account (id) deferrable,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  email text collate "C" not null,
  email_verified bigint not null,
  created_at bigint not null,
  unique (issuer, subject)
);
create index provider_identity_by_account on provider_identity (account_id);
alter table token add column identity_id text collate "C";
alter table token add column provider_session_id text collate "C";
create index token_by_identity on token (identity_id) where identity_id is not null;
`;
