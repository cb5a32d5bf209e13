/**
 * The second part of the third release: agents, their executions, the queues of inputs, and the
 * output of agents.
 */
export const name = "0005-agent";

export const statements = `
create table agent (
  id text primary key,
  organization_id text references organization (id),
  name text not null,
  is_default integer not null,
  form integer not null,
  command text not null,
  body text not null
) strict;
create unique index agent_by_name on agent (ifnull(organization_id, ''), name);
create index agent_default on agent (organization_id) where is_default = 1;

create table agent_execution (
  id text primary key,
  organization_id text not null references organization (id),
  agent_id text not null,
  creator_id text not null,
  creator_principal integer not null,
  account_id text,
  role integer not null,
  project_id text,
  environment_id text not null,
  made_environment integer not null,
  runner_id text,
  session_id text not null,
  parent_id text,
  start_key text,
  action_id text references workflow_action (id) on delete set null,
  step_key text,
  phase integer not null,
  desired_phase integer not null,
  queue_revision integer not null,
  last_sequence integer not null,
  created_at integer not null,
  changed_at integer not null,
  stopped_at integer,
  first_turn text,
  progress text not null,
  body text not null,
  unique (parent_id, start_key),
  unique (action_id, step_key)
) strict;
create index agent_execution_by_id on agent_execution (organization_id, id);
create index agent_execution_by_creator on agent_execution (organization_id, creator_id, id);
create index agent_execution_by_session on agent_execution (organization_id, session_id);
create index environment_by_session on environment (organization_id, session_id) where session_id is not null;
create index agent_execution_by_environment on agent_execution (environment_id, phase);
create index agent_execution_by_parent on agent_execution (parent_id, phase) where parent_id is not null;
create index agent_execution_open on agent_execution (organization_id, account_id) where stopped_at is null;

create table agent_execution_annotation (
  execution_id text not null references agent_execution (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (execution_id, key)
) strict, without rowid;
create index agent_execution_annotation_by_pair on agent_execution_annotation (key, value, execution_id);

create table agent_input (
  execution_id text not null references agent_execution (id) on delete cascade,
  input_id text not null,
  number integer not null,
  place real not null,
  receipt integer not null,
  fence integer not null,
  steer integer not null,
  turn text not null,
  body text not null,
  primary key (execution_id, input_id)
) strict, without rowid;
create index agent_input_in_order on agent_input (execution_id, receipt, place);
create unique index agent_input_by_number on agent_input (execution_id, number);

create table agent_input_image (
  execution_id text not null,
  input_id text not null,
  position integer not null,
  data blob not null,
  primary key (execution_id, input_id, position),
  foreign key (execution_id, input_id) references agent_input (execution_id, input_id) on delete cascade
) strict, without rowid;

create table agent_output (
  execution_id text not null references agent_execution (id) on delete cascade,
  sequence integer not null,
  body text not null,
  primary key (execution_id, sequence)
) strict, without rowid;

create table agent_interest (
  execution_id text not null references agent_execution (id) on delete cascade,
  interest_id text not null,
  fires_at integer,
  sub_agent_id text,
  user_message integer not null,
  environment_id text,
  environment_phase text,
  primary key (execution_id, interest_id)
) strict, without rowid;
create index agent_interest_by_time on agent_interest (fires_at) where fires_at is not null;
create index agent_interest_by_sub_agent on agent_interest (sub_agent_id) where sub_agent_id is not null;
create index agent_interest_by_environment on agent_interest (environment_id) where environment_id is not null;
`;
