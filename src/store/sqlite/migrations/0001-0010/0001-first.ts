/**
 * The first release: organizations, tokens, runners, projects, environments, and the record of
 * changes.
 */
export const name = "0001-first";

export const statements = `
create table organization (
  id text primary key,
  name text not null,
  created_at integer not null,
  updated_at integer not null,
  sequence integer not null default 0
) strict;

create table account (
  id text primary key,
  name text not null,
  email text not null unique,
  created_at integer not null,
  updated_at integer not null
) strict;

create table member (
  id text primary key,
  organization_id text not null references organization (id),
  account_id text not null references account (id),
  role integer not null,
  created_at integer not null,
  unique (organization_id, account_id)
) strict;

create table token (
  id text primary key,
  organization_id text not null references organization (id),
  kind text not null,
  subject_id text not null,
  hash blob not null unique,
  key_id text not null,
  read_only integer not null,
  expires_at integer not null,
  last_used_at integer,
  body text not null
) strict;
create index token_by_subject on token (organization_id, kind, subject_id, id);

create table runner (
  id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  kind integer not null,
  body text not null
) strict;
create index runner_by_organization on runner (organization_id, id);

create table environment_class (
  id text primary key,
  organization_id text not null references organization (id),
  runner_id text not null references runner (id),
  enabled integer not null,
  body text not null
) strict;
create index environment_class_by_organization on environment_class (organization_id, id);
create index environment_class_by_runner on environment_class (runner_id, id);

create table project (
  id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  desired_phase integer not null,
  popularity real not null default 0,
  search_text text not null,
  technical_description text not null,
  used_by text not null,
  body text not null
) strict;
create index project_by_id on project (organization_id, id);
create index project_by_popularity on project (organization_id, popularity desc, id);
create index project_by_phase on project (desired_phase, id);

create table project_environment_class (
  project_id text not null references project (id) on delete cascade,
  position integer not null,
  runner_id text not null references runner (id),
  environment_class_id text references environment_class (id),
  primary key (project_id, position)
) strict, without rowid;
create index project_environment_class_by_runner on project_environment_class (runner_id, project_id);
create index project_environment_class_by_class on project_environment_class (environment_class_id, project_id);

create table project_remote (
  project_id text not null references project (id) on delete cascade,
  remote_uri text not null,
  primary key (project_id, remote_uri)
) strict, without rowid;
create index project_remote_by_uri on project_remote (remote_uri, project_id);

create table project_annotation (
  project_id text not null references project (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (project_id, key)
) strict, without rowid;
create index project_annotation_by_pair on project_annotation (key, value, project_id);

create table project_use (
  project_id text not null references project (id) on delete cascade,
  principal integer not null,
  subject_id text not null,
  environment_id text not null,
  primary key (project_id, principal, subject_id)
) strict, without rowid;
create index project_use_by_recency on project_use (project_id, environment_id desc);

create table environment (
  id text primary key,
  organization_id text not null references organization (id),
  project_id text references project (id),
  runner_id text references runner (id),
  environment_class_id text references environment_class (id),
  creator_id text not null,
  phase integer not null,
  desired_phase integer not null,
  session_id text,
  created_at integer not null,
  archived_at integer,
  counted integer not null default 0,
  search_text text not null,
  body text not null
) strict;
create index environment_by_id on environment (organization_id, id);
create index environment_by_archival on environment (organization_id, archived_at, id);
create index environment_by_project on environment (project_id);
create index environment_by_runner on environment (runner_id);
create index environment_by_class on environment (environment_class_id);
create index environment_uncounted on environment (project_id, created_at) where counted = 0;

create table audit_log (
  id text primary key,
  organization_id text,
  sequence integer not null,
  at integer not null,
  actor_id text not null,
  actor_principal integer not null,
  operation text not null,
  subject_type text not null,
  subject_id text not null,
  reason text not null,
  diff text not null,
  unique (organization_id, sequence)
) strict;
create trigger audit_log_is_not_updated before update on audit_log
begin select raise(abort, 'audit rows are never changed'); end;
create trigger audit_log_is_not_deleted before delete on audit_log
begin select raise(abort, 'audit rows are never removed'); end;
-- An insert that replaces removes a row without telling the trigger above.
create trigger audit_log_is_not_replaced before insert on audit_log
when exists (
  select 1 from audit_log
  where id = new.id or (organization_id is new.organization_id and sequence = new.sequence)
)
begin select raise(abort, 'audit rows are never replaced'); end;

create table event (
  organization_id text not null,
  sequence integer not null,
  at integer not null,
  kind text not null,
  resource_type text not null,
  resource_id text not null,
  primary key (organization_id, sequence)
) strict, without rowid;

create table idempotency (
  caller_id text not null,
  operation text not null,
  key text not null,
  request_hash blob not null,
  response blob not null,
  created_at integer not null,
  primary key (caller_id, operation, key)
) strict, without rowid;

create table fact (
  name text primary key,
  value text not null
) strict, without rowid;
`;
