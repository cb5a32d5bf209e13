create table workflow (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  creator_id text collate "C" not null,
  executor_id text collate "C" not null,
  executor_principal bigint not null,
  disabled bigint not null,
  deleting bigint not null,
  sort_name text collate "C" not null,
  search_text text collate "C" not null,
  completed_at bigint,
  body text collate "C" not null
);
create index workflow_by_id on workflow (organization_id, id);
create index workflow_by_name on workflow (organization_id, sort_name, id);
create index workflow_by_completion on workflow (organization_id, completed_at, id);
create index workflow_by_executor on workflow (organization_id, executor_id);
create index workflow_being_deleted on workflow (id) where deleting = 1;

create table workflow_secret (
  workflow_id text collate "C" primary key,
  key_id text collate "C" not null,
  sealed bytea not null,
  previous_key_id text collate "C",
  previous_sealed bytea,
  previous_until bigint,
  known_to text collate "C" not null default '[]',
  previous_known_to text collate "C" not null default '[]'
);
create index workflow_secret_by_key on workflow_secret (key_id);
create index workflow_secret_by_previous_key on workflow_secret (previous_key_id) where previous_key_id is not null;

create table workflow_schedule (
  workflow_id text collate "C" not null,
  trigger_index bigint not null,
  organization_id text collate "C" not null,
  cron_expression text collate "C" not null,
  overlap_policy bigint not null,
  next_at bigint not null,
  time_zone text collate "C" not null default '',
  primary key (workflow_id, trigger_index)
);
create index workflow_schedule_by_time on workflow_schedule (next_at);

create table workflow_execution (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  workflow_id text collate "C" not null,
  trigger_index bigint,
  trigger_kind text collate "C" not null,
  creator_id text collate "C" not null,
  executor_id text collate "C" not null,
  executor_principal bigint not null,
  phase bigint not null,
  desired_phase bigint not null,
  expanded bigint not null,
  failed bigint not null,
  pending_count bigint not null,
  running_count bigint not null,
  failed_count bigint not null,
  done_count bigint not null,
  stopped_count bigint not null,
  started_at bigint not null,
  finished_at bigint,
  search_text text collate "C" not null,
  variables text collate "C" not null,
  retried_execution_id text collate "C",
  body text collate "C" not null,
  source_set_by text collate "C",
  action_failures text collate "C" not null default '[]',
  action_warnings text collate "C" not null default '[]'
);
create index workflow_execution_by_id on workflow_execution (organization_id, id);
create index workflow_execution_by_workflow on workflow_execution (workflow_id, id);
create index workflow_execution_by_end on workflow_execution (organization_id, finished_at) where finished_at is not null;
create index workflow_execution_failed on workflow_execution (workflow_id, started_at) where failed = 1;
create index workflow_execution_unexpanded on workflow_execution (id) where expanded = 0;
create index workflow_execution_open on workflow_execution (organization_id, executor_id) where finished_at is null;
create index workflow_execution_by_phase on workflow_execution (organization_id, phase, id);
create index workflow_execution_with_failed_actions on workflow_execution (organization_id, id) where failed_count > 0;

create table workflow_action (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  workflow_id text collate "C" not null,
  execution_id text collate "C" not null,
  is_report bigint not null,
  phase bigint not null,
  desired_phase bigint not null,
  queued bigint not null,
  failed bigint not null,
  environment_id text collate "C",
  started_at bigint,
  stops_at bigint,
  outputs text collate "C",
  body text collate "C" not null
);
create index workflow_action_by_id on workflow_action (organization_id, id);
create index workflow_action_by_execution on workflow_action (execution_id, id);
create index workflow_action_waiting on workflow_action (execution_id, id) where phase = 1 and queued = 0;
create index workflow_action_given on workflow_action (execution_id) where queued = 1;
create index workflow_action_by_deadline on workflow_action (stops_at) where stops_at is not null;
create index workflow_action_by_workflow on workflow_action (workflow_id, id);
create index workflow_action_with_outputs on workflow_action (organization_id, id) where outputs is not null;
create index workflow_action_by_phase on workflow_action (organization_id, phase, id);

create table step_log (
  action_id text collate "C" not null,
  attempt bigint not null,
  step_index bigint not null,
  start bigint not null,
  data bytea not null,
  primary key (action_id, attempt, step_index, start)
);

create table workflow_trigger_event (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  workflow_id text collate "C" not null,
  at bigint not null,
  source bigint not null,
  verdict bigint not null,
  dedupe_key text collate "C",
  execution_id text collate "C",
  payload text collate "C" not null,
  body text collate "C" not null,
  unique (workflow_id, dedupe_key)
);
create index workflow_trigger_event_by_id on workflow_trigger_event (organization_id, id);
create index workflow_trigger_event_by_workflow on workflow_trigger_event (workflow_id, id);
create index workflow_trigger_event_by_time on workflow_trigger_event (at);

create table webhook_delivery (
  workflow_id text collate "C" not null,
  delivery_id text collate "C" not null,
  at bigint not null,
  event_ids text collate "C" not null,
  primary key (workflow_id, delivery_id)
);
create index webhook_delivery_by_time on webhook_delivery (at);

create table pending_stop (
  organization_id text collate "C" not null,
  target text collate "C" not null,
  target_id text collate "C" not null,
  mode text collate "C" not null,
  up_to text collate "C" not null,
  primary key (organization_id, target, target_id, mode)
);

create table workflow_plan (
  execution_id text collate "C" primary key,
  body text collate "C" not null
);
