create table audit_log (
  id text collate "C" primary key,
  organization_id text collate "C",
  sequence bigint not null,
  at bigint not null,
  actor_id text collate "C" not null,
  actor_principal bigint not null,
  operation text collate "C" not null,
  subject_type text collate "C" not null,
  subject_id text collate "C" not null,
  reason text collate "C" not null,
  diff text collate "C" not null,
  previous_hash bytea,
  hash bytea,
  key_id text collate "C",
  unique (organization_id, sequence)
);
create index audit_log_by_key on audit_log (key_id);
create unique index audit_log_of_installation on audit_log (sequence) where organization_id is null;
create index audit_log_by_actor on audit_log (organization_id, actor_id, sequence);
create index audit_log_by_subject on audit_log (organization_id, subject_id, sequence);

create table event (
  organization_id text collate "C" not null,
  sequence bigint not null,
  at bigint not null,
  kind text collate "C" not null,
  resource_type text collate "C" not null,
  resource_id text collate "C" not null,
  creator_id text collate "C",
  owner_id text collate "C",
  environment_id text collate "C",
  primary key (organization_id, sequence)
);
create index event_by_time on event (organization_id, at);

create table idempotency (
  caller_id text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null,
  request_hash bytea not null,
  response bytea not null,
  created_at bigint not null,
  organization_id text collate "C",
  redacted bigint not null default 0,
  primary key (caller_id, operation, key)
);
create index idempotency_by_time on idempotency (created_at);

create table fact (
  name text collate "C" primary key,
  value text collate "C" not null
);

create table installation (
  id bigint primary key check (id = 1),
  sequence bigint not null,
  chain_hash bytea
);

create table pruning (
  organization_id text collate "C" primary key
);
