create table project (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  creator_id text collate "C" not null,
  desired_phase bigint not null,
  popularity double precision not null default 0,
  search_text text collate "C" not null,
  technical_description text collate "C" not null,
  used_by text collate "C" not null,
  body text collate "C" not null,
  search_row bigint,
  source_set_by text collate "C"
);
create index project_by_id on project (organization_id, id);
create index project_by_popularity on project (organization_id, popularity desc, id);
create index project_by_phase on project (desired_phase, id);
create index project_by_creator on project (organization_id, creator_id);

create table project_environment_class (
  project_id text collate "C" not null,
  position bigint not null,
  runner_id text collate "C" not null,
  environment_class_id text collate "C",
  primary key (project_id, position)
);
create index project_environment_class_by_runner on project_environment_class (runner_id, project_id);
create index project_environment_class_by_class on project_environment_class (environment_class_id, project_id);

create table project_use (
  project_id text collate "C" not null,
  principal bigint not null,
  subject_id text collate "C" not null,
  environment_id text collate "C" not null,
  primary key (project_id, principal, subject_id)
);
create index project_use_by_recency on project_use (project_id, environment_id desc);

create table prebuild_schedule (
  project_id text collate "C" primary key,
  organization_id text collate "C" not null,
  next_at bigint not null
);
create index prebuild_schedule_by_time on prebuild_schedule (next_at);

create table prebuild (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  project_id text collate "C" not null,
  environment_class_id text collate "C" not null,
  runner_id text collate "C" not null,
  state text collate "C" not null,
  instant bigint not null,
  executor_id text collate "C" not null,
  executor_principal bigint not null,
  stops_at bigint,
  body text collate "C" not null,
  unique (project_id, environment_class_id, instant)
);
create index prebuild_by_project on prebuild (project_id, environment_class_id, state, instant desc);
create index prebuild_by_runner on prebuild (runner_id);
create index prebuild_by_deadline on prebuild (stops_at) where stops_at is not null;

create table project_remote (
  project_id text collate "C" not null,
  organization_id text collate "C" not null,
  remote_uri text collate "C" not null
);
-- Remotes and values of annotations may be longer than the 2,700 bytes that other indexes take.
create unique index project_remote_by_project on project_remote (project_id, md5(remote_uri));
create index project_remote_by_uri on project_remote using hash (remote_uri);

create table project_annotation (
  project_id text collate "C" not null,
  organization_id text collate "C" not null,
  key text collate "C" not null,
  value text collate "C" not null,
  primary key (project_id, key)
);
create index project_annotation_by_value on project_annotation using hash (value);
