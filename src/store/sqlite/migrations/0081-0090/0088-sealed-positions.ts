/**
 * Seals how far the audit trail has been exported. What was stored without a seal is forgotten: the targets get their
 * rows once more, known by their ids.
 */
export const name = "0088-sealed-positions";

export const statements = `
drop table audit_export;
create table audit_export (
  target text not null,
  organization_id text not null,
  sequence integer not null,
  chain_hash blob,
  key_id text not null,
  hash blob not null,
  primary key (target, organization_id)
) strict, without rowid;
`;
