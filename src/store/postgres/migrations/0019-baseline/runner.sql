create table runner (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  creator_id text collate "C" not null,
  kind bigint not null,
  body text collate "C" not null,
  local bigint not null default 0,
  seen_at bigint
);
create index runner_by_organization on runner (organization_id, id);
create index runner_by_sign_of_life on runner (seen_at) where seen_at is not null;

create table environment_class (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  runner_id text collate "C" not null,
  enabled bigint not null,
  body text collate "C" not null
);
create index environment_class_by_organization on environment_class (organization_id, id);
create index environment_class_by_runner on environment_class (runner_id, id);

create table host_token (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  runner_id text collate "C" not null,
  host text collate "C" not null,
  subject_id text collate "C" not null,
  subject_principal bigint not null,
  expires_at bigint,
  key_id text collate "C" not null,
  sealed_token bytea not null,
  sealed_refresh_token bytea,
  body text collate "C" not null,
  unique (runner_id, host, subject_id, subject_principal)
);
create index host_token_by_organization on host_token (organization_id, id);
create index host_token_by_key on host_token (key_id);

create table work (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  kind bigint not null,
  subject_id text collate "C" not null,
  group_id text collate "C" not null,
  account_id text collate "C",
  runner_id text collate "C",
  environment_class_id text collate "C",
  turn bigint not null,
  not_before bigint not null,
  attempt bigint not null,
  fence bigint not null,
  leased_by text collate "C",
  expires_at bigint,
  stop bigint not null,
  unique (kind, subject_id)
);
create index work_ready on work (organization_id, kind, environment_class_id, turn, group_id, id) where leased_by is null;
create index work_of_group on work (group_id, turn);
create index work_leased on work (expires_at) where leased_by is not null;
create index work_by_holder on work (leased_by) where leased_by is not null;
create index work_by_runner on work (runner_id) where runner_id is not null;
create index work_by_account on work (account_id) where account_id is not null;

create table work_turn (
  organization_id text collate "C" primary key,
  turn bigint not null
);
