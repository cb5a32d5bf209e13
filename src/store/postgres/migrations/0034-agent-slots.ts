/** Since when a leased agent execution could give its slot back, and how many slots for them a runner has. */
export const name = "0034-agent-slots";

export const statements = `
alter table work add column idle_since bigint;
alter table runner add column agent_slots bigint;
create index work_idle on work (organization_id, leased_by, idle_since) where idle_since is not null;
`;
