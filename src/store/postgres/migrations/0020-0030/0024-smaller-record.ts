/**
 * A smaller record: the text of changes is stored packed where that is shorter. Old events are found by their numbers,
 * which ascend with time.
 */
export const name = "0024-smaller-record";

export const lowestLevel = 2;

export const statements = `
alter table audit_log add column packed_diff bytea;

drop index event_by_time;
`;
