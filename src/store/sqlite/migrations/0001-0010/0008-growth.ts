/**
 * Limits for data that grows: stops of many executions are stored and done in several transactions,
 * and lists by phase scan an index of each phase.
 */
export const name = "0008-growth";

export const statements = `
create table pending_stop (
  organization_id text not null references organization (id),
  target text not null,
  target_id text not null,
  mode text not null,
  up_to text not null,
  primary key (organization_id, target, target_id, mode)
) strict, without rowid;

create index workflow_execution_by_phase on workflow_execution (organization_id, phase, id);
create index workflow_execution_with_failed_actions on workflow_execution (organization_id, id)
where failed_count > 0;
create index workflow_action_by_phase on workflow_action (organization_id, phase, id);
create index agent_execution_by_phase on agent_execution (organization_id, phase, id);
create index environment_by_phase on environment (organization_id, phase, id);
`;
