/** When retention has taken executions away, and the indexes by which it finds them. */
export const name = "0066-retention";

export const statements = `
alter table workflow_execution add column removed_at integer;
alter table agent_execution add column removed_at integer;
create index workflow_execution_being_removed on workflow_execution (organization_id, id)
where removed_at is not null;
create index agent_execution_being_removed on agent_execution (organization_id, id)
where removed_at is not null;
create index agent_execution_by_stop on agent_execution (organization_id, stopped_at)
where stopped_at is not null;
create index agent_execution_by_earlier on agent_execution (earlier_id) where earlier_id is not null;
`;
