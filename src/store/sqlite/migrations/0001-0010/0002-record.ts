/**
 * The second release: service accounts, policies, credentials, blocking, and an audit trail with
 * hashes.
 */
export const name = "0002-record";

export const statements = `
alter table organization add column enterprise integer not null default 0;
alter table organization add column chain_hash blob;
alter table organization add column pruned_sequence integer not null default 0;

alter table account add column blocked_at integer;

alter table member add column left_at integer;

alter table token add column creator_account_id text;
alter table token add column disabled_at integer;
create index token_by_key on token (key_id);
create index token_by_creator on token (creator_account_id, kind) where creator_account_id is not null;

create table service_account (
  id text primary key,
  organization_id text not null references organization (id),
  creator_account_id text,
  valid_until integer not null,
  suspended integer not null,
  search_text text not null,
  body text not null
) strict;
create index service_account_by_organization on service_account (organization_id, id);

create table organization_policies (
  organization_id text primary key references organization (id),
  body text not null,
  origins text not null
) strict;

create table security_policy (
  id text primary key,
  organization_id text not null references organization (id),
  search_text text not null,
  body text not null
) strict;
create index security_policy_by_organization on security_policy (organization_id, id);

create table host_token (
  id text primary key,
  organization_id text not null references organization (id),
  runner_id text not null references runner (id),
  host text not null,
  subject_id text not null,
  subject_principal integer not null,
  expires_at integer,
  key_id text not null,
  sealed_token blob not null,
  sealed_refresh_token blob,
  body text not null,
  unique (runner_id, host, subject_id, subject_principal)
) strict;
create index host_token_by_organization on host_token (organization_id, id);
create index host_token_by_key on host_token (key_id);

create table subscription (
  id text primary key,
  account_id text not null references account (id),
  name text not null,
  created_at integer not null,
  cancelled_at integer
) strict;
create index subscription_by_account on subscription (account_id);

create table block_receipt (
  account_id text primary key references account (id),
  blocked_at integer not null,
  body text not null
) strict, without rowid;

create table installation (
  id integer primary key check (id = 1),
  sequence integer not null,
  chain_hash blob
) strict;
insert into installation (id, sequence) values (1, 0);

alter table audit_log add column previous_hash blob;
alter table audit_log add column hash blob;
alter table audit_log add column key_id text;
create index audit_log_by_key on audit_log (key_id);
create unique index audit_log_of_installation on audit_log (sequence) where organization_id is null;
create index audit_log_by_actor on audit_log (organization_id, actor_id, sequence);
create index audit_log_by_subject on audit_log (organization_id, subject_id, sequence);

create table pruning (
  organization_id text primary key
) strict, without rowid;
create trigger event_is_not_updated before update on event
begin select raise(abort, 'event rows are never changed'); end;
create trigger event_is_only_pruned before delete on event
when not exists (select 1 from pruning where pruning.organization_id = old.organization_id)
begin select raise(abort, 'event rows are removed by the pruning job only'); end;
create index event_by_time on event (organization_id, at);

alter table idempotency add column organization_id text;
alter table idempotency add column redacted integer not null default 0;
create index idempotency_by_time on idempotency (created_at);

alter table environment add column stopped_at integer;
alter table environment add column lockdown_at integer;
alter table environment add column security_policy_id text references security_policy (id);
create index environment_by_creator on environment (organization_id, creator_id, phase);
create index environment_by_stop on environment (organization_id, stopped_at) where stopped_at is not null;
create index environment_by_lockdown on environment (lockdown_at, id) where lockdown_at is not null;
create index environment_by_security_policy on environment (security_policy_id)
where security_policy_id is not null;
`;
