/** Stores in columns whether runners should get work, and whether they take agents that are defined by the API. */
export const name = "0079-runner-state";

export const statements = `
alter table runner add column available bigint not null default 0;
alter table runner add column api_agents bigint not null default 0;
update runner set
  available = (body like '%"desiredPhase":"RUNNER_PHASE_ACTIVE"%')::int,
  api_agents = (body like '%"apiAgents":true%')::int;
`;
