CREATE TABLE account (
  id text primary key,
  name text not null,
  email text not null unique,
  created_at integer not null,
  updated_at integer not null
, blocked_at integer, name_folded text not null default '', search_text text not null default '', scim_organization_id text) strict;

CREATE TABLE agent (
  id text primary key,
  organization_id text references organization (id),
  name text not null,
  is_default integer not null,
  form integer not null,
  command text not null,
  body text not null
, mcp_servers text not null default '[]') strict;

CREATE UNIQUE INDEX agent_by_name on agent (ifnull(organization_id, ''), name);

CREATE INDEX agent_default on agent (organization_id) where is_default = 1;

CREATE TABLE agent_execution (
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
  body text not null, earlier_id text, earlier_sequence integer not null default 0, is_fork integer not null default 0, origins integer not null default 0, removed_at integer,
  unique (parent_id, start_key),
  unique (action_id, step_key)
) strict;

CREATE TABLE agent_execution_annotation (
  execution_id text not null references agent_execution (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (execution_id, key)
) strict, without rowid;

CREATE INDEX agent_execution_annotation_by_pair on agent_execution_annotation (key, value, execution_id);

CREATE INDEX agent_execution_being_removed on agent_execution (organization_id, id)
where removed_at is not null;

CREATE INDEX agent_execution_by_creator on agent_execution (organization_id, creator_id, id);

CREATE INDEX agent_execution_by_earlier on agent_execution (earlier_id) where earlier_id is not null;

CREATE INDEX agent_execution_by_environment on agent_execution (environment_id, phase);

CREATE INDEX agent_execution_by_id on agent_execution (organization_id, id);

CREATE INDEX agent_execution_by_parent on agent_execution (parent_id, phase) where parent_id is not null;

CREATE INDEX agent_execution_by_phase on agent_execution (organization_id, phase, id);

CREATE INDEX agent_execution_by_session on agent_execution (organization_id, session_id);

CREATE INDEX agent_execution_by_stop on agent_execution (organization_id, stopped_at)
where stopped_at is not null;

CREATE TRIGGER agent_execution_goes_after_its_parts before delete on agent_execution
begin delete from agent_input_image where execution_id = old.id; delete from agent_input where execution_id = old.id; delete from agent_output where execution_id = old.id; end;

CREATE TRIGGER agent_execution_is_counted_anew after update of first_turn, progress, body on agent_execution
when (ifnull(octet_length(new.first_turn), 0) + ifnull(octet_length(new.progress), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.first_turn), 0) + ifnull(octet_length(old.progress), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.first_turn), 0) + ifnull(octet_length(new.progress), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.first_turn), 0) + ifnull(octet_length(old.progress), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER agent_execution_is_counted_in after insert on agent_execution
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.first_turn), 0) + ifnull(octet_length(new.progress), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER agent_execution_is_counted_out after delete on agent_execution
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.first_turn), 0) + ifnull(octet_length(old.progress), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE INDEX agent_execution_open on agent_execution (organization_id, account_id) where stopped_at is null;

CREATE TABLE agent_input (
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

CREATE UNIQUE INDEX agent_input_by_number on agent_input (execution_id, number);

CREATE TABLE agent_input_image (
  execution_id text not null,
  input_id text not null,
  position integer not null,
  data blob not null,
  primary key (execution_id, input_id, position),
  foreign key (execution_id, input_id) references agent_input (execution_id, input_id) on delete cascade
) strict, without rowid;

CREATE TRIGGER agent_input_image_is_counted_anew after update of data on agent_input_image
when (ifnull(octet_length(new.data), 0)) <> (ifnull(octet_length(old.data), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.data), 0)) - (ifnull(octet_length(old.data), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_input_image_is_counted_in after insert on agent_input_image
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.data), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_input_image_is_counted_out after delete on agent_input_image
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.data), 0)) where organization_id = (select organization_id from agent_execution where id = old.execution_id); end;

CREATE INDEX agent_input_in_order on agent_input (execution_id, receipt, place);

CREATE TRIGGER agent_input_is_counted_anew after update of turn, body on agent_input
when (ifnull(octet_length(new.turn), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.turn), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.turn), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.turn), 0) + ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_input_is_counted_in after insert on agent_input
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.turn), 0) + ifnull(octet_length(new.body), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_input_is_counted_out after delete on agent_input
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.turn), 0) + ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from agent_execution where id = old.execution_id); end;

CREATE TABLE agent_interest (
  execution_id text not null references agent_execution (id) on delete cascade,
  interest_id text not null,
  fires_at integer,
  sub_agent_id text,
  user_message integer not null,
  environment_id text,
  environment_phase text,
  primary key (execution_id, interest_id)
) strict, without rowid;

CREATE INDEX agent_interest_by_environment on agent_interest (environment_id) where environment_id is not null;

CREATE INDEX agent_interest_by_sub_agent on agent_interest (sub_agent_id) where sub_agent_id is not null;

CREATE INDEX agent_interest_by_time on agent_interest (fires_at) where fires_at is not null;

CREATE TABLE agent_output (
  execution_id text not null references agent_execution (id) on delete cascade,
  sequence integer not null,
  body text not null, fold_key text,
  primary key (execution_id, sequence)
) strict, without rowid;

CREATE INDEX agent_output_by_fold_key on agent_output (execution_id, fold_key, sequence)
where fold_key is not null;

CREATE TRIGGER agent_output_is_counted_anew after update of body on agent_output
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_output_is_counted_in after insert on agent_output
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = (select organization_id from agent_execution where id = new.execution_id); end;

CREATE TRIGGER agent_output_is_counted_out after delete on agent_output
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from agent_execution where id = old.execution_id); end;

CREATE TABLE agent_review_draft (
  id text primary key,
  organization_id text not null references organization (id),
  execution_id text not null references agent_execution (id) on delete cascade,
  author_id text not null,
  author_principal integer not null,
  body text not null
) strict;

CREATE INDEX agent_review_draft_by_author on agent_review_draft (organization_id, author_id);

CREATE INDEX agent_review_draft_by_execution on agent_review_draft (execution_id, author_id, id);

CREATE TRIGGER agent_review_draft_is_counted_anew after update of body on agent_review_draft
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER agent_review_draft_is_counted_in after insert on agent_review_draft
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER agent_review_draft_is_counted_out after delete on agent_review_draft
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE approval (
  id text primary key,
  organization_id text not null references organization (id),
  phase integer not null,
  agent_execution_id text references agent_execution (id) on delete cascade,
  tool_call_id text,
  digest text not null,
  workflow_execution_id text,
  action_id text references workflow_action (id) on delete cascade,
  step_index integer,
  creator_id text not null,
  creator_principal integer not null,
  is_shared integer not null,
  expires_at integer not null,
  body text not null, environment_id text,
  unique (agent_execution_id, tool_call_id, digest),
  unique (action_id, step_index)
) strict;

CREATE INDEX approval_by_environment on approval (environment_id) where environment_id is not null;

CREATE INDEX approval_by_execution on approval (workflow_execution_id) where action_id is null and agent_execution_id is null;

CREATE INDEX approval_by_expiry on approval (expires_at) where phase = 1;

CREATE INDEX approval_by_id on approval (organization_id, id);

CREATE INDEX approval_by_phase on approval (organization_id, phase, id);

CREATE TABLE approval_decider (
  approval_id text not null references approval (id) on delete cascade,
  user_id text not null,
  primary key (approval_id, user_id)
) strict, without rowid;

CREATE TRIGGER approval_is_counted_anew after update of body on approval
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER approval_is_counted_in after insert on approval
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER approval_is_counted_out after delete on approval
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE audit_anchor (
  organization_id text primary key,
  sequence integer not null,
  chain_hash blob,
  rows integer not null,
  until_sequence integer not null,
  at integer not null,
  key_id text not null,
  hash blob not null
) strict, without rowid;

CREATE TRIGGER audit_anchor_begins_at_nothing before insert on audit_anchor
when new.sequence <> 0 or new.rows <> 0 or new.chain_hash is not null
  or exists (select 1 from audit_anchor where organization_id = new.organization_id)
begin select raise(abort, 'anchors of the audit trail begin before its first row'); end;

CREATE INDEX audit_anchor_by_key on audit_anchor (key_id);

CREATE TRIGGER audit_anchor_is_not_removed before delete on audit_anchor
when exists (select 1 from organization where id = old.organization_id)
begin select raise(abort, 'anchors of the audit trail are never removed'); end;

CREATE TRIGGER audit_anchor_only_moves_on before update on audit_anchor
when new.organization_id <> old.organization_id
  or new.sequence < old.sequence or new.until_sequence < old.until_sequence or new.sequence > new.until_sequence
  or new.rows - old.rows <> new.sequence - old.sequence
  or (new.sequence = old.sequence
    and (new.until_sequence = old.until_sequence or new.chain_hash is not old.chain_hash))
  or (new.sequence > old.sequence and not exists (
    select 1 from audit_log where organization_id = new.organization_id and sequence = new.sequence
      and hash is new.chain_hash
  ))
begin select raise(abort, 'anchors of the audit trail only move on, to a row that is there'); end;

CREATE TABLE audit_export (
  target text not null,
  organization_id text not null,
  sequence integer not null,
  chain_hash blob,
  key_id text not null,
  hash blob not null,
  primary key (target, organization_id)
) strict, without rowid;

CREATE TABLE audit_log (
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
  diff text not null, previous_hash blob, hash blob, key_id text, packed_diff blob,
  unique (organization_id, sequence)
) strict;

CREATE INDEX audit_log_by_actor on audit_log (actor_id, sequence);

CREATE INDEX audit_log_by_key on audit_log (key_id);

CREATE INDEX audit_log_by_subject on audit_log (subject_id, sequence);

CREATE TRIGGER audit_log_is_not_deleted before delete on audit_log
when old.organization_id is null or exists (
  select 1 from organization where id = old.organization_id and (
    old.sequence > organization.sequence - 1000
    or old.at > unixepoch() * 1000 - 7776000000
    or not exists (
      select 1 from audit_anchor
      where audit_anchor.organization_id = old.organization_id and old.sequence <= audit_anchor.sequence
    )
  )
)
begin select raise(abort, 'audit rows are never removed'); end;

CREATE TRIGGER audit_log_is_not_replaced before insert on audit_log
when exists (
  select 1 from audit_log
  where id = new.id or (organization_id is new.organization_id and sequence = new.sequence)
)
begin select raise(abort, 'audit rows are never replaced'); end;

CREATE TRIGGER audit_log_is_not_updated before update on audit_log
begin select raise(abort, 'audit rows are never changed'); end;

CREATE UNIQUE INDEX audit_log_of_installation on audit_log (sequence) where organization_id is null;

CREATE TABLE block_receipt (
  account_id text primary key references account (id),
  blocked_at integer not null,
  body text not null
) strict, without rowid;

CREATE TABLE device_login (
  id text primary key,
  device_hash blob not null unique,
  user_mac blob not null unique,
  machine text not null,
  address text not null,
  network text not null,
  created_at integer not null,
  expires_at integer not null,
  interval_ms integer not null,
  polled_at integer,
  organization_id text,
  user_id text,
  denied integer not null
) strict;

CREATE INDEX device_login_by_end on device_login (expires_at);

CREATE INDEX device_login_by_network on device_login (network, expires_at);

CREATE INDEX device_login_by_user on device_login (organization_id, user_id) where organization_id is not null;

CREATE TABLE environment (
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
, stopped_at integer, lockdown_at integer, security_policy_id text references security_policy (id), source_set_by text, steered_by text) strict;

CREATE INDEX environment_by_archival on environment (organization_id, archived_at, id);

CREATE INDEX environment_by_class on environment (environment_class_id);

CREATE INDEX environment_by_creator on environment (organization_id, creator_id, phase);

CREATE INDEX environment_by_id on environment (organization_id, id);

CREATE INDEX environment_by_lockdown on environment (lockdown_at, id) where lockdown_at is not null;

CREATE INDEX environment_by_phase on environment (organization_id, phase, id);

CREATE INDEX environment_by_project on environment (project_id);

CREATE INDEX environment_by_runner on environment (runner_id);

CREATE INDEX environment_by_security_policy on environment (security_policy_id)
where security_policy_id is not null;

CREATE INDEX environment_by_session on environment (organization_id, session_id) where session_id is not null;

CREATE INDEX environment_by_stop on environment (organization_id, stopped_at) where stopped_at is not null;

CREATE TABLE environment_changes (
  environment_id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  creator_principal integer not null,
  action_id text references workflow_action (id) on delete cascade,
  refreshed_at integer not null,
  version integer not null,
  body text not null,
  diffs text not null
) strict;

CREATE INDEX environment_changes_by_action on environment_changes (action_id) where action_id is not null;

CREATE INDEX environment_changes_by_organization on environment_changes (organization_id);

CREATE TRIGGER environment_changes_is_counted_anew after update of body on environment_changes
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_changes_is_counted_in after insert on environment_changes
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_changes_is_counted_out after delete on environment_changes
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE environment_class (
  id text primary key,
  organization_id text not null references organization (id),
  runner_id text not null references runner (id),
  enabled integer not null,
  body text not null
) strict;

CREATE INDEX environment_class_by_organization on environment_class (organization_id, id);

CREATE INDEX environment_class_by_runner on environment_class (runner_id, id);

CREATE TRIGGER environment_class_is_counted_anew after update of body on environment_class
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_class_is_counted_in after insert on environment_class
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_class_is_counted_out after delete on environment_class
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE environment_connection (
  environment_id text not null references environment_egress (environment_id) on delete cascade,
  organization_id text not null references organization (id),
  place integer not null,
  id text not null,
  body text not null,
  primary key (environment_id, place),
  unique (environment_id, id)
) strict;

CREATE TRIGGER environment_connection_is_counted_anew after update of body on environment_connection
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_connection_is_counted_in after insert on environment_connection
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_connection_is_counted_out after delete on environment_connection
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE environment_egress (
  environment_id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  creator_principal integer not null,
  action_id text references workflow_action (id) on delete cascade,
  refused integer not null,
  allowed integer not null,
  left_out integer not null
) strict;

CREATE INDEX environment_egress_by_action on environment_egress (action_id) where action_id is not null;

CREATE INDEX environment_egress_by_organization on environment_egress (organization_id);

CREATE TABLE environment_file_diff (
  environment_id text not null references environment_changes (environment_id) on delete cascade,
  organization_id text not null references organization (id),
  base integer not null,
  place integer not null,
  body text not null,
  primary key (environment_id, base, place)
) strict;

CREATE TRIGGER environment_file_diff_is_counted_anew after update of body on environment_file_diff
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_file_diff_is_counted_in after insert on environment_file_diff
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_file_diff_is_counted_out after delete on environment_file_diff
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TRIGGER environment_is_counted_anew after update of body on environment
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_is_counted_in after insert on environment
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER environment_is_counted_out after delete on environment
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE environment_question (
  id text primary key,
  organization_id text not null references organization (id),
  runner_id text not null references runner (id) on delete cascade,
  environment_id text not null,
  asker_id text not null,
  ends_at integer not null,
  body text not null,
  answer blob
) strict;

CREATE INDEX environment_question_by_end on environment_question (ends_at);

CREATE INDEX environment_question_by_organization on environment_question (organization_id);

CREATE INDEX environment_question_by_runner on environment_question (runner_id, id);

CREATE INDEX environment_uncounted on environment (project_id, created_at) where counted = 0;

CREATE TABLE event (
  organization_id text not null,
  sequence integer not null,
  at integer not null,
  kind text not null,
  resource_type text not null,
  resource_id text not null, creator_id text, owner_id text, environment_id text,
  primary key (organization_id, sequence)
) strict, without rowid;

CREATE TABLE event_delivery (
  id text primary key,
  organization_id text not null references organization (id),
  subscription_id text not null,
  at integer not null,
  state integer not null,
  next_at integer,
  body text not null
) strict;

CREATE INDEX event_delivery_by_organization on event_delivery (organization_id);

CREATE INDEX event_delivery_by_subscription on event_delivery (subscription_id, id);

CREATE INDEX event_delivery_unsent on event_delivery (subscription_id, state, id) where state in (1, 4);

CREATE TRIGGER event_is_not_updated before update on event
begin select raise(abort, 'event rows are never changed'); end;

CREATE TRIGGER event_is_only_pruned before delete on event
when exists (select 1 from organization where id = old.organization_id)
  and not exists (select 1 from pruning where pruning.organization_id = old.organization_id)
begin select raise(abort, 'event rows are removed by the pruning job only'); end;

CREATE TABLE event_subscription (
  id text primary key,
  organization_id text not null references organization (id),
  state integer not null,
  sequence integer not null,
  due_at integer not null,
  failing_since integer,
  key_id text not null,
  sealed_url blob not null,
  sealed_secret blob not null,
  sealed_former blob,
  former_until integer,
  body text not null
) strict;

CREATE INDEX event_subscription_by_id on event_subscription (organization_id, id);

CREATE INDEX event_subscription_by_key on event_subscription (key_id);

CREATE INDEX event_subscription_due on event_subscription (due_at) where state = 1;

CREATE TRIGGER event_subscription_is_counted_anew after update of body on event_subscription
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER event_subscription_is_counted_in after insert on event_subscription
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER event_subscription_is_counted_out after delete on event_subscription
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE fact (
  name text primary key,
  value text not null
) strict, without rowid;

CREATE TABLE group_membership (
  id text primary key,
  organization_id text not null references organization (id),
  group_id text not null references member_group (id) on delete cascade,
  subject_id text not null,
  subject_principal integer not null,
  provider text
) strict;

CREATE UNIQUE INDEX group_membership_by_group on group_membership (group_id, subject_id);

CREATE INDEX group_membership_by_id on group_membership (group_id, id);

CREATE INDEX group_membership_by_subject on group_membership (organization_id, subject_id, group_id);

CREATE TABLE host_token (
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

CREATE INDEX host_token_by_key on host_token (key_id);

CREATE INDEX host_token_by_organization on host_token (organization_id, id);

CREATE TRIGGER host_token_is_counted_anew after update of sealed_token, sealed_refresh_token, body on host_token
when (ifnull(octet_length(new.sealed_token), 0) + ifnull(octet_length(new.sealed_refresh_token), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.sealed_token), 0) + ifnull(octet_length(old.sealed_refresh_token), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed_token), 0) + ifnull(octet_length(new.sealed_refresh_token), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.sealed_token), 0) + ifnull(octet_length(old.sealed_refresh_token), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER host_token_is_counted_in after insert on host_token
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed_token), 0) + ifnull(octet_length(new.sealed_refresh_token), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER host_token_is_counted_out after delete on host_token
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.sealed_token), 0) + ifnull(octet_length(old.sealed_refresh_token), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE idempotency (
  caller_id text not null,
  operation text not null,
  key text not null,
  request_hash blob not null,
  response blob not null,
  created_at integer not null, organization_id text, redacted integer not null default 0,
  primary key (caller_id, operation, key)
) strict, without rowid;

CREATE INDEX idempotency_by_time on idempotency (created_at);

CREATE TRIGGER idempotency_is_counted_anew after update of response on idempotency
when (ifnull(octet_length(new.response), 0)) <> (ifnull(octet_length(old.response), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.response), 0)) - (ifnull(octet_length(old.response), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER idempotency_is_counted_in after insert on idempotency
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.response), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER idempotency_is_counted_out after delete on idempotency
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.response), 0)) where organization_id = old.organization_id; end;

CREATE TABLE installation (
  id integer primary key check (id = 1),
  sequence integer not null,
  chain_hash blob
, feature_level integer not null default 1) strict;

CREATE TABLE machine_token_use (
  hash blob primary key,
  expires_at integer not null
) strict;

CREATE INDEX machine_token_use_by_end on machine_token_use (expires_at);

CREATE TABLE member (
  id text primary key,
  organization_id text not null references organization (id),
  account_id text not null references account (id),
  role integer not null,
  created_at integer not null, left_at integer, suspended_at integer, external_id text,
  unique (organization_id, account_id)
) strict;

CREATE INDEX member_by_external_id on member (organization_id, external_id) where external_id is not null;

CREATE INDEX member_by_joining on member (organization_id, created_at, id);

CREATE TABLE member_group (
  id text primary key,
  organization_id text not null references organization (id),
  name_folded text not null,
  provider text,
  member_count integer not null,
  search_text text not null,
  body text not null
, external_id text) strict;

CREATE INDEX member_group_by_id on member_group (organization_id, id);

CREATE UNIQUE INDEX member_group_by_name on member_group (organization_id, name_folded);

CREATE TRIGGER member_group_is_counted_anew after update of body on member_group
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER member_group_is_counted_in after insert on member_group
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER member_group_is_counted_out after delete on member_group
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE migration (
    position integer primary key,
    name text not null unique
  ) strict;

CREATE TABLE organization (
  id text primary key,
  name text not null,
  created_at integer not null,
  updated_at integer not null,
  sequence integer not null default 0
, enterprise integer not null default 0, chain_hash blob, pruned_sequence integer not null default 0, invite_domains text not null default '[]') strict;

CREATE TABLE organization_invite (
  id text primary key,
  organization_id text not null unique references organization (id),
  hash blob not null unique,
  key_id text not null,
  sealed blob not null,
  role integer not null,
  max_uses integer not null,
  uses integer not null,
  expires_at integer not null
) strict;

CREATE INDEX organization_invite_by_key on organization_invite (key_id);

CREATE TRIGGER organization_is_counted_from after insert on organization
begin insert into organization_storage (organization_id, bytes) values (new.id, 0); end;

CREATE TABLE organization_policies (
  organization_id text primary key references organization (id),
  body text not null,
  origins text not null
) strict;

CREATE TRIGGER organization_policies_is_counted_anew after update of body, origins on organization_policies
when (ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.origins), 0)) <> (ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.origins), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.origins), 0)) - (ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.origins), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER organization_policies_is_counted_in after insert on organization_policies
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.origins), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER organization_policies_is_counted_out after delete on organization_policies
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.origins), 0)) where organization_id = old.organization_id; end;

CREATE TABLE organization_storage (
  organization_id text primary key references organization (id) on delete cascade,
  bytes integer not null
) strict, without rowid;

CREATE TABLE pending_stop (
  organization_id text not null references organization (id),
  target text not null,
  target_id text not null,
  mode text not null,
  up_to text not null,
  primary key (organization_id, target, target_id, mode)
) strict, without rowid;

CREATE TABLE prebuild (
  id text primary key,
  organization_id text not null references organization (id),
  project_id text not null,
  environment_class_id text not null,
  runner_id text not null references runner (id),
  state text not null,
  instant integer not null,
  executor_id text not null,
  executor_principal integer not null,
  stops_at integer,
  body text not null, creator_id text,
  unique (project_id, environment_class_id, instant)
) strict;

CREATE INDEX prebuild_by_deadline on prebuild (stops_at) where stops_at is not null;

CREATE INDEX prebuild_by_id on prebuild (organization_id, id);

CREATE INDEX prebuild_by_project on prebuild (project_id, environment_class_id, state, instant desc);

CREATE INDEX prebuild_by_runner on prebuild (runner_id);

CREATE TRIGGER prebuild_is_counted_anew after update of body on prebuild
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER prebuild_is_counted_in after insert on prebuild
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER prebuild_is_counted_out after delete on prebuild
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE prebuild_schedule (
  project_id text primary key references project (id) on delete cascade,
  organization_id text not null,
  next_at integer not null
) strict, without rowid;

CREATE INDEX prebuild_schedule_by_time on prebuild_schedule (next_at);

CREATE TABLE project (
  id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  desired_phase integer not null,
  popularity real not null default 0,
  search_text text not null,
  technical_description text not null,
  used_by text not null,
  body text not null
, search_row integer, source_set_by text) strict;

CREATE TABLE project_annotation (
  project_id text not null references project (id) on delete cascade,
  organization_id text not null,
  key text not null,
  value text not null,
  primary key (project_id, key)
) strict, without rowid;

CREATE INDEX project_annotation_by_pair on project_annotation (organization_id, key, value, project_id);

CREATE INDEX project_by_creator on project (organization_id, creator_id);

CREATE INDEX project_by_id on project (organization_id, id);

CREATE INDEX project_by_phase on project (desired_phase, id);

CREATE INDEX project_by_popularity on project (organization_id, popularity desc, id);

CREATE INDEX project_by_search_row on project (search_row, popularity, id);

CREATE TABLE project_environment_class (
  project_id text not null references project (id) on delete cascade,
  position integer not null,
  runner_id text not null references runner (id),
  environment_class_id text references environment_class (id),
  primary key (project_id, position)
) strict, without rowid;

CREATE INDEX project_environment_class_by_class on project_environment_class (environment_class_id, project_id);

CREATE INDEX project_environment_class_by_runner on project_environment_class (runner_id, project_id);

CREATE TRIGGER project_is_counted_anew after update of technical_description, used_by, body on project
when (ifnull(octet_length(new.technical_description), 0) + ifnull(octet_length(new.used_by), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.technical_description), 0) + ifnull(octet_length(old.used_by), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.technical_description), 0) + ifnull(octet_length(new.used_by), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.technical_description), 0) + ifnull(octet_length(old.used_by), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER project_is_counted_in after insert on project
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.technical_description), 0) + ifnull(octet_length(new.used_by), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER project_is_counted_out after delete on project
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.technical_description), 0) + ifnull(octet_length(old.used_by), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE project_remote (
  project_id text not null references project (id) on delete cascade,
  organization_id text not null,
  remote_uri text not null,
  primary key (project_id, remote_uri)
) strict, without rowid;

CREATE INDEX project_remote_by_uri on project_remote (organization_id, remote_uri, project_id);

CREATE VIRTUAL TABLE project_search using fts5 (
  grams, content = '', columnsize = 0, detail = none, tokenize = 'ascii', prefix = '1 2'
);

CREATE TABLE 'project_search_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'project_search_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'project_search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE project_search_range (
  organization_id text primary key references organization (id),
  number integer not null unique,
  last_row integer not null
) strict;

CREATE TABLE project_use (
  project_id text not null references project (id) on delete cascade,
  principal integer not null,
  subject_id text not null,
  environment_id text not null,
  primary key (project_id, principal, subject_id)
) strict, without rowid;

CREATE INDEX project_use_by_recency on project_use (project_id, environment_id desc);

CREATE TABLE provider_identity (
  id text primary key,
  account_id text not null references account (id),
  issuer text not null,
  subject text not null,
  email text not null,
  email_verified integer not null,
  created_at integer not null,
  unique (issuer, subject)
) strict;

CREATE INDEX provider_identity_by_account on provider_identity (account_id);

CREATE TABLE pruning (
  organization_id text primary key
) strict, without rowid;

CREATE TABLE "pull_request" (
  id text primary key,
  organization_id text not null references organization (id),
  workflow_id text not null,
  execution_id text not null,
  action_id text references workflow_action (id) on delete cascade,
  environment_id text not null,
  agent_execution_id text,
  owner_id text,
  owner_principal integer,
  host text not null,
  repository text not null,
  identity text not null,
  number integer not null,
  head_sha text not null,
  state integer not null,
  source_set_by text not null,
  changed_at integer not null,
  seen_at integer,
  next_poll_at integer,
  failures integer not null default 0,
  memory text not null default '{}',
  body text not null,
  unique (action_id, host, repository, number)
) strict;

CREATE INDEX pull_request_by_environment on pull_request (environment_id, id);

CREATE INDEX pull_request_by_execution on pull_request (execution_id, id);

CREATE INDEX pull_request_by_id on pull_request (organization_id, id);

CREATE INDEX pull_request_by_identity on pull_request (organization_id, identity, number);

CREATE INDEX pull_request_by_poll on pull_request (next_poll_at) where next_poll_at is not null;

CREATE INDEX pull_request_by_run on pull_request (agent_execution_id, id) where agent_execution_id is not null;

CREATE INDEX pull_request_by_workflow on pull_request (workflow_id);

CREATE TRIGGER pull_request_is_counted_anew after update of memory, body on pull_request
when (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER pull_request_is_counted_in after insert on pull_request
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.memory), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER pull_request_is_counted_out after delete on pull_request
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.memory), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE role_assignment (
  id text primary key,
  organization_id text not null references organization (id),
  group_id text not null references member_group (id) on delete cascade,
  resource_type integer not null,
  resource_id text not null,
  role integer not null,
  creator_id text not null,
  creator_principal integer not null,
  created_at integer not null,
  updated_at integer not null
) strict;

CREATE INDEX role_assignment_by_group on role_assignment (group_id, resource_type, resource_id);

CREATE UNIQUE INDEX role_assignment_by_resource on role_assignment (resource_id, group_id);

CREATE TABLE runner (
  id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  kind integer not null,
  body text not null
, local integer not null default 0, seen_at integer, instance_id text, instance_seen_at integer, agent_slots integer, requests_stream text, requests_until integer, kept_policies integer, available integer not null default 0, api_agents integer not null default 0) strict;

CREATE INDEX runner_by_organization on runner (organization_id, id);

CREATE INDEX runner_by_sign_of_life on runner (seen_at) where seen_at is not null;

CREATE TRIGGER runner_is_counted_anew after update of body on runner
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER runner_is_counted_in after insert on runner
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER runner_is_counted_out after delete on runner
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE secret (
  id text primary key,
  organization_id text not null references organization (id),
  owner_kind text not null,
  owner_id text not null,
  name text not null,
  value_bytes integer not null,
  key_id text not null,
  sealed blob not null,
  body text not null,
  unique (owner_id, name)
) strict;

CREATE INDEX secret_by_key on secret (key_id);

CREATE INDEX secret_by_organization on secret (organization_id, id);

CREATE TRIGGER secret_is_counted_anew after update of sealed, body on secret
when (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER secret_is_counted_in after insert on secret
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.sealed), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER secret_is_counted_out after delete on secret
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.sealed), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE security_policy (
  id text primary key,
  organization_id text not null references organization (id),
  search_text text not null,
  body text not null
) strict;

CREATE INDEX security_policy_by_organization on security_policy (organization_id, id);

CREATE TRIGGER security_policy_is_counted_anew after update of body on security_policy
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER security_policy_is_counted_in after insert on security_policy
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER security_policy_is_counted_out after delete on security_policy
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE service_account (
  id text primary key,
  organization_id text not null references organization (id),
  creator_account_id text,
  valid_until integer not null,
  suspended integer not null,
  search_text text not null,
  body text not null
) strict;

CREATE INDEX service_account_by_organization on service_account (organization_id, id);

CREATE TRIGGER service_account_is_counted_anew after update of body on service_account
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER service_account_is_counted_in after insert on service_account
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER service_account_is_counted_out after delete on service_account
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE service_account_trust (
  id text primary key,
  organization_id text not null references organization (id),
  service_account_id text not null,
  creator_account_id text,
  body text not null
) strict;

CREATE INDEX service_account_trust_by_account on service_account_trust (service_account_id, id);

CREATE INDEX service_account_trust_by_id on service_account_trust (organization_id, id);

CREATE TRIGGER service_account_trust_is_counted_anew after update of body on service_account_trust
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER service_account_trust_is_counted_in after insert on service_account_trust
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER service_account_trust_is_counted_out after delete on service_account_trust
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE sign_in_attempt (
  key text primary key,
  since integer not null,
  count integer not null
) strict;

CREATE INDEX sign_in_attempt_by_time on sign_in_attempt (since);

CREATE TABLE step_log (
  action_id text not null references workflow_action (id) on delete cascade,
  attempt integer not null,
  step_index integer not null,
  start integer not null,
  data blob not null,
  primary key (action_id, attempt, step_index, start)
) strict, without rowid;

CREATE TRIGGER step_log_is_counted_anew after update of data on step_log
when (ifnull(octet_length(new.data), 0)) <> (ifnull(octet_length(old.data), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.data), 0)) - (ifnull(octet_length(old.data), 0)) where organization_id = (select organization_id from workflow_action where id = new.action_id); end;

CREATE TRIGGER step_log_is_counted_in after insert on step_log
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.data), 0)) where organization_id = (select organization_id from workflow_action where id = new.action_id); end;

CREATE TRIGGER step_log_is_counted_out after delete on step_log
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.data), 0)) where organization_id = (select organization_id from workflow_action where id = old.action_id); end;

CREATE TABLE subscription (
  id text primary key,
  account_id text not null references account (id),
  name text not null,
  created_at integer not null,
  cancelled_at integer
) strict;

CREATE INDEX subscription_by_account on subscription (account_id);

CREATE TABLE token (
  id text primary key,
  organization_id text not null references organization (id),
  kind text not null,
  subject_id text not null,
  hash blob not null unique,
  read_only integer not null,
  expires_at integer not null,
  last_used_at integer,
  body text not null
, creator_account_id text, disabled_at integer, hmac_key_id text, warned_at integer, parent_id text, identity_id text, provider_session_id text) strict;

CREATE INDEX token_by_creator on token (creator_account_id, kind) where creator_account_id is not null;

CREATE INDEX token_by_expiry on token (kind, expires_at);

CREATE INDEX token_by_hmac_key on token (hmac_key_id) where hmac_key_id is not null;

CREATE INDEX token_by_identity on token (identity_id) where identity_id is not null;

CREATE INDEX token_by_parent on token (parent_id) where parent_id is not null;

CREATE INDEX token_by_subject on token (organization_id, kind, subject_id, id);

CREATE TRIGGER token_is_counted_anew after update of body on token
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER token_is_counted_in after insert on token
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER token_is_counted_out after delete on token
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE webhook_delivery (
  workflow_id text not null references workflow (id) on delete cascade,
  delivery_id text not null,
  at integer not null,
  event_ids text not null,
  primary key (workflow_id, delivery_id)
) strict, without rowid;

CREATE INDEX webhook_delivery_by_time on webhook_delivery (at);

CREATE TABLE work (
  id text primary key,
  organization_id text not null references organization (id),
  kind integer not null,
  subject_id text not null,
  group_id text not null,
  account_id text,
  runner_id text references runner (id),
  environment_class_id text,
  turn integer not null,
  not_before integer not null,
  attempt integer not null,
  fence integer not null,
  leased_by text,
  expires_at integer,
  stop integer not null, instance_id text, idle_since integer, needs integer not null default 0, waiting_since integer,
  unique (kind, subject_id)
) strict;

CREATE INDEX work_by_account on work (account_id) where account_id is not null;

CREATE INDEX work_by_holder on work (leased_by) where leased_by is not null;

CREATE INDEX work_by_runner on work (runner_id) where runner_id is not null;

CREATE INDEX work_held_by_needs on work (organization_id, needs, kind, environment_class_id, turn, group_id, id)
where leased_by is null and needs <> 0;

CREATE INDEX work_idle on work (organization_id, leased_by, idle_since) where idle_since is not null;

CREATE INDEX work_leased on work (expires_at) where leased_by is not null;

CREATE INDEX work_of_group on work (group_id, turn);

CREATE INDEX work_open on work (organization_id, kind, environment_class_id, turn, group_id, id)
where leased_by is null and needs = 0;

CREATE TABLE work_turn (
  organization_id text primary key references organization (id),
  turn integer not null
) strict, without rowid;

CREATE INDEX work_waiting on work (waiting_since) where waiting_since is not null;

CREATE TABLE workflow (
  id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  executor_id text not null,
  executor_principal integer not null,
  disabled integer not null,
  deleting integer not null,
  sort_name text not null,
  search_text text not null,
  completed_at integer,
  body text not null
) strict;

CREATE TABLE workflow_action (
  id text primary key,
  organization_id text not null references organization (id),
  workflow_id text not null references workflow (id),
  execution_id text not null references workflow_execution (id) on delete cascade,
  is_report integer not null,
  phase integer not null,
  desired_phase integer not null,
  queued integer not null,
  failed integer not null,
  environment_id text,
  started_at integer,
  stops_at integer,
  outputs text,
  body text not null
, session text, finished_at integer, attempt integer not null default 0, progress text) strict;

CREATE INDEX workflow_action_by_deadline on workflow_action (stops_at) where stops_at is not null;

CREATE INDEX workflow_action_by_execution on workflow_action (execution_id, id);

CREATE INDEX workflow_action_by_id on workflow_action (organization_id, id);

CREATE INDEX workflow_action_by_phase on workflow_action (organization_id, phase, id);

CREATE INDEX workflow_action_by_workflow on workflow_action (workflow_id, id);

CREATE INDEX workflow_action_given on workflow_action (execution_id) where queued = 1;

CREATE TRIGGER workflow_action_goes_after_its_parts before delete on workflow_action
begin delete from step_log where action_id = old.id; end;

CREATE TRIGGER workflow_action_is_counted_anew after update of outputs, body, progress on workflow_action
when (ifnull(octet_length(new.outputs), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) <> (ifnull(octet_length(old.outputs), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.outputs), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) - (ifnull(octet_length(old.outputs), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_action_is_counted_in after insert on workflow_action
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.outputs), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_action_is_counted_out after delete on workflow_action
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.outputs), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0)) where organization_id = old.organization_id; end;

CREATE INDEX workflow_action_waiting on workflow_action (execution_id, id) where phase = 1 and queued = 0;

CREATE INDEX workflow_action_with_outputs on workflow_action (organization_id, id) where outputs is not null;

CREATE INDEX workflow_being_deleted on workflow (id) where deleting = 1;

CREATE INDEX workflow_by_completion on workflow (organization_id, completed_at, id);

CREATE INDEX workflow_by_executor on workflow (organization_id, executor_id);

CREATE INDEX workflow_by_id on workflow (organization_id, id);

CREATE INDEX workflow_by_name on workflow (organization_id, sort_name, id);

CREATE TABLE workflow_execution (
  id text primary key,
  organization_id text not null references organization (id),
  workflow_id text not null references workflow (id),
  trigger_index integer,
  trigger_kind text not null,
  creator_id text not null,
  executor_id text not null,
  executor_principal integer not null,
  phase integer not null,
  desired_phase integer not null,
  expanded integer not null,
  failed integer not null,
  pending_count integer not null,
  running_count integer not null,
  failed_count integer not null,
  done_count integer not null,
  stopped_count integer not null,
  started_at integer not null,
  finished_at integer,
  search_text text not null,
  variables text not null,
  retried_execution_id text,
  body text not null
, source_set_by text, action_failures text not null default '[]', action_warnings text not null default '[]', session text, progress text, removed_at integer) strict;

CREATE INDEX workflow_execution_being_removed on workflow_execution (organization_id, id)
where removed_at is not null;

CREATE INDEX workflow_execution_by_end on workflow_execution (organization_id, finished_at)
where finished_at is not null;

CREATE INDEX workflow_execution_by_id on workflow_execution (organization_id, id);

CREATE INDEX workflow_execution_by_phase on workflow_execution (organization_id, phase, id);

CREATE INDEX workflow_execution_by_retried on workflow_execution (retried_execution_id)
where retried_execution_id is not null;

CREATE INDEX workflow_execution_by_workflow on workflow_execution (workflow_id, id);

CREATE INDEX workflow_execution_failed on workflow_execution (workflow_id, started_at) where failed = 1;

CREATE TRIGGER workflow_execution_goes_after_its_parts before delete on workflow_execution
begin delete from workflow_plan where execution_id = old.id; end;

CREATE TRIGGER workflow_execution_is_counted_anew after update of variables, action_failures, action_warnings, body, progress on workflow_execution
when (ifnull(octet_length(new.variables), 0) + ifnull(octet_length(new.action_failures), 0) + ifnull(octet_length(new.action_warnings), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) <> (ifnull(octet_length(old.variables), 0) + ifnull(octet_length(old.action_failures), 0) + ifnull(octet_length(old.action_warnings), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.variables), 0) + ifnull(octet_length(new.action_failures), 0) + ifnull(octet_length(new.action_warnings), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) - (ifnull(octet_length(old.variables), 0) + ifnull(octet_length(old.action_failures), 0) + ifnull(octet_length(old.action_warnings), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_execution_is_counted_in after insert on workflow_execution
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.variables), 0) + ifnull(octet_length(new.action_failures), 0) + ifnull(octet_length(new.action_warnings), 0) + ifnull(octet_length(new.body), 0) + ifnull(octet_length(new.progress), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_execution_is_counted_out after delete on workflow_execution
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.variables), 0) + ifnull(octet_length(old.action_failures), 0) + ifnull(octet_length(old.action_warnings), 0) + ifnull(octet_length(old.body), 0) + ifnull(octet_length(old.progress), 0)) where organization_id = old.organization_id; end;

CREATE INDEX workflow_execution_open on workflow_execution (organization_id, executor_id)
where finished_at is null;

CREATE INDEX workflow_execution_unexpanded on workflow_execution (id) where expanded = 0;

CREATE INDEX workflow_execution_with_failed_actions on workflow_execution (organization_id, id)
where failed_count > 0;

CREATE TRIGGER workflow_is_counted_anew after update of body on workflow
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_is_counted_in after insert on workflow
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_is_counted_out after delete on workflow
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

CREATE TABLE workflow_plan (
  execution_id text primary key references workflow_execution (id) on delete cascade,
  body text not null
) strict;

CREATE TRIGGER workflow_plan_is_counted_anew after update of body on workflow_plan
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from workflow_execution where id = new.execution_id); end;

CREATE TRIGGER workflow_plan_is_counted_in after insert on workflow_plan
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = (select organization_id from workflow_execution where id = new.execution_id); end;

CREATE TRIGGER workflow_plan_is_counted_out after delete on workflow_plan
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = (select organization_id from workflow_execution where id = old.execution_id); end;

CREATE TABLE workflow_schedule (
  workflow_id text not null references workflow (id) on delete cascade,
  trigger_index integer not null,
  organization_id text not null,
  cron_expression text not null,
  overlap_policy integer not null,
  next_at integer not null, time_zone text not null default '',
  primary key (workflow_id, trigger_index)
) strict, without rowid;

CREATE INDEX workflow_schedule_by_time on workflow_schedule (next_at);

CREATE TABLE workflow_secret (
  workflow_id text primary key references workflow (id) on delete cascade,
  key_id text not null,
  sealed blob not null,
  previous_key_id text,
  previous_sealed blob,
  previous_until integer
, known_to text not null default '[]', previous_known_to text not null default '[]') strict, without rowid;

CREATE INDEX workflow_secret_by_key on workflow_secret (key_id);

CREATE INDEX workflow_secret_by_previous_key on workflow_secret (previous_key_id)
where previous_key_id is not null;

CREATE TABLE workflow_trigger_event (
  id text primary key,
  organization_id text not null references organization (id),
  workflow_id text not null references workflow (id) on delete cascade,
  at integer not null,
  source integer not null,
  verdict integer not null,
  dedupe_key text,
  execution_id text,
  payload text not null,
  body text not null,
  unique (workflow_id, dedupe_key)
) strict;

CREATE INDEX workflow_trigger_event_by_id on workflow_trigger_event (organization_id, id);

CREATE INDEX workflow_trigger_event_by_time on workflow_trigger_event (at);

CREATE INDEX workflow_trigger_event_by_workflow on workflow_trigger_event (workflow_id, id);

CREATE TRIGGER workflow_trigger_event_is_counted_anew after update of payload, body on workflow_trigger_event
when (ifnull(octet_length(new.payload), 0) + ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.payload), 0) + ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.payload), 0) + ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.payload), 0) + ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_trigger_event_is_counted_in after insert on workflow_trigger_event
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.payload), 0) + ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;

CREATE TRIGGER workflow_trigger_event_is_counted_out after delete on workflow_trigger_event
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.payload), 0) + ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
