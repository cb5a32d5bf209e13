/**
 * What grows is bounded: stops of many executions are kept and done in turns.
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
`;
