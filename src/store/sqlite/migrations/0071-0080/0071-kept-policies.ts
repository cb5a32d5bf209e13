/**
 * Stores what runners keep, what work needs of its runner and since when it waits for one. Work that needs something has an
 * index of its own, so that other work is found without it.
 */
export const name = "0071-kept-policies";

export const statements = `
alter table runner add column kept_policies integer;
alter table work add column needs integer not null default 0;
alter table work add column waiting_since integer;
drop index work_ready;
create index work_open on work (organization_id, kind, environment_class_id, turn, group_id, id)
where leased_by is null and needs = 0;
create index work_held on work (organization_id, kind, environment_class_id, turn, group_id, id)
where leased_by is null and needs <> 0;
create index work_waiting on work (waiting_since) where waiting_since is not null;
`;
