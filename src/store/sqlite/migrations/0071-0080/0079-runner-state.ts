/**
 * Finds held work by what it needs, so that none is read that a runner may not have, and whether a runner is connected that
 * may take it by columns alone.
 */
export const name = "0079-runner-state";

export const statements = `
drop index work_held;
create index work_held_by_needs on work (organization_id, needs, kind, environment_class_id, turn, group_id, id)
where leased_by is null and needs <> 0;
alter table runner add column available integer not null default 0;
alter table runner add column api_agents integer not null default 0;
update runner set
  available = body like '%"desiredPhase":"RUNNER_PHASE_ACTIVE"%',
  api_agents = body like '%"apiAgents":true%';
`;
