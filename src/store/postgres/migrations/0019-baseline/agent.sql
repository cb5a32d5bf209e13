create table agent (
  id text collate "C" primary key,
  organization_id text collate "C",
  name text collate "C" not null,
  is_default bigint not null,
  form bigint not null,
  command text collate "C" not null,
  body text collate "C" not null
);
create unique index agent_by_name on agent (coalesce(organization_id, ''), name);
create index agent_default on agent (organization_id) where is_default = 1;

create table agent_execution (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  agent_id text collate "C" not null,
  creator_id text collate "C" not null,
  creator_principal bigint not null,
  account_id text collate "C",
  role bigint not null,
  project_id text collate "C",
  environment_id text collate "C" not null,
  made_environment bigint not null,
  runner_id text collate "C",
  session_id text collate "C" not null,
  parent_id text collate "C",
  start_key text collate "C",
  action_id text collate "C",
  step_key text collate "C",
  phase bigint not null,
  desired_phase bigint not null,
  queue_revision bigint not null,
  last_sequence bigint not null,
  created_at bigint not null,
  changed_at bigint not null,
  stopped_at bigint,
  first_turn text collate "C",
  progress text collate "C" not null,
  body text collate "C" not null,
  unique (parent_id, start_key),
  unique (action_id, step_key)
);
create index agent_execution_by_id on agent_execution (organization_id, id);
create index agent_execution_by_creator on agent_execution (organization_id, creator_id, id);
create index agent_execution_by_session on agent_execution (organization_id, session_id);
create index agent_execution_by_environment on agent_execution (environment_id, phase);
create index agent_execution_by_parent on agent_execution (parent_id, phase) where parent_id is not null;
create index agent_execution_open on agent_execution (organization_id, account_id) where stopped_at is null;
create index agent_execution_by_phase on agent_execution (organization_id, phase, id);

create table agent_execution_annotation (
  execution_id text collate "C" not null,
  key text collate "C" not null,
  value text collate "C" not null,
  primary key (execution_id, key)
);
create index agent_execution_annotation_by_value on agent_execution_annotation using hash (value);

create table agent_input (
  execution_id text collate "C" not null,
  input_id text collate "C" not null,
  number bigint not null,
  place double precision not null,
  receipt bigint not null,
  fence bigint not null,
  steer bigint not null,
  turn text collate "C" not null,
  body text collate "C" not null,
  primary key (execution_id, input_id)
);
create index agent_input_in_order on agent_input (execution_id, receipt, place);
create unique index agent_input_by_number on agent_input (execution_id, number);

create table agent_input_image (
  execution_id text collate "C" not null,
  input_id text collate "C" not null,
  position bigint not null,
  data bytea not null,
  primary key (execution_id, input_id, position)
);

create table agent_output (
  execution_id text collate "C" not null,
  sequence bigint not null,
  body text collate "C" not null,
  primary key (execution_id, sequence)
);

create table agent_interest (
  execution_id text collate "C" not null,
  interest_id text collate "C" not null,
  fires_at bigint,
  sub_agent_id text collate "C",
  user_message bigint not null,
  environment_id text collate "C",
  environment_phase text collate "C",
  primary key (execution_id, interest_id)
);
create index agent_interest_by_time on agent_interest (fires_at) where fires_at is not null;
create index agent_interest_by_sub_agent on agent_interest (sub_agent_id) where sub_agent_id is not null;
create index agent_interest_by_environment on agent_interest (environment_id) where environment_id is not null;
