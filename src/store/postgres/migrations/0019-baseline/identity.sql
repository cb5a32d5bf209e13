create table organization (
  id text collate "C" primary key,
  name text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  sequence bigint not null default 0,
  enterprise bigint not null default 0,
  chain_hash bytea,
  pruned_sequence bigint not null default 0
);

create table account (
  id text collate "C" primary key,
  name text collate "C" not null,
  email text collate "C" not null unique,
  created_at bigint not null,
  updated_at bigint not null,
  blocked_at bigint,
  name_folded text collate "C" not null default '',
  search_text text collate "C" not null default ''
);

create table member (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  account_id text collate "C" not null,
  role bigint not null,
  created_at bigint not null,
  left_at bigint,
  unique (organization_id, account_id)
);
create index member_by_joining on member (organization_id, created_at, id);

create table token (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  hash bytea not null unique,
  read_only bigint not null,
  expires_at bigint not null,
  last_used_at bigint,
  body text collate "C" not null,
  creator_account_id text collate "C",
  disabled_at bigint,
  hmac_key_id text collate "C"
);
create index token_by_subject on token (organization_id, kind, subject_id, id);
create index token_by_creator on token (creator_account_id, kind) where creator_account_id is not null;
create index token_by_expiry on token (kind, expires_at);
create index token_by_hmac_key on token (hmac_key_id) where hmac_key_id is not null;

create table service_account (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  creator_account_id text collate "C",
  valid_until bigint not null,
  suspended bigint not null,
  search_text text collate "C" not null,
  body text collate "C" not null
);
create index service_account_by_organization on service_account (organization_id, id);

create table subscription (
  id text collate "C" primary key,
  account_id text collate "C" not null,
  name text collate "C" not null,
  created_at bigint not null,
  cancelled_at bigint
);
create index subscription_by_account on subscription (account_id);

create table block_receipt (
  account_id text collate "C" primary key,
  blocked_at bigint not null,
  body text collate "C" not null
);

create table organization_storage (
  organization_id text collate "C" primary key,
  bytes bigint not null
);
