create table environment (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  project_id text collate "C",
  runner_id text collate "C",
  environment_class_id text collate "C",
  creator_id text collate "C" not null,
  phase bigint not null,
  desired_phase bigint not null,
  session_id text collate "C",
  created_at bigint not null,
  archived_at bigint,
  counted bigint not null default 0,
  search_text text collate "C" not null,
  body text collate "C" not null,
  stopped_at bigint,
  lockdown_at bigint,
  security_policy_id text collate "C",
  source_set_by text collate "C"
);
create index environment_by_id on environment (organization_id, id);
create index environment_by_archival on environment (organization_id, archived_at, id);
create index environment_by_project on environment (project_id);
create index environment_by_runner on environment (runner_id);
create index environment_by_class on environment (environment_class_id);
create index environment_uncounted on environment (project_id, created_at) where counted = 0;
create index environment_by_creator on environment (organization_id, creator_id, phase);
create index environment_by_stop on environment (organization_id, stopped_at) where stopped_at is not null;
create index environment_by_lockdown on environment (lockdown_at, id) where lockdown_at is not null;
create index environment_by_security_policy on environment (security_policy_id) where security_policy_id is not null;
create index environment_by_session on environment (organization_id, session_id) where session_id is not null;
create index environment_by_phase on environment (organization_id, phase, id);
