/** Stores what runners keep, what work needs of its runner and since when it waits for one. */
export const name = "0071-kept-policies";

export const statements = `
alter table runner add column kept_policies bigint;
alter table work add column needs bigint not null default 0;
alter table work add column waiting_since bigint;
`;
