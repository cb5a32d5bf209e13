/**
 * A smaller record: the text of changes is stored packed where that is shorter, and the indexes of the record hold no
 * organization where the other columns find the rows alone. Old events are found by their numbers, which ascend with time.
 */
export const name = "0024-smaller-record";

export const lowestLevel = 2;

export const statements = `
alter table audit_log add column packed_diff blob;

drop index audit_log_by_actor;
create index audit_log_by_actor on audit_log (actor_id, sequence);
drop index audit_log_by_subject;
create index audit_log_by_subject on audit_log (subject_id, sequence);

drop index event_by_time;
`;
