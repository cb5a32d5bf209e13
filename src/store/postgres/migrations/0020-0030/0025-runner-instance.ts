/** The instances of runners, and which of them holds a lease. */
export const name = "0025-runner-instance";

export const statements = `
alter table runner add column instance_id text collate "C";
alter table runner add column instance_seen_at bigint;
alter table work add column instance_id text collate "C";
`;
