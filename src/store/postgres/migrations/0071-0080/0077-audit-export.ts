/** Keeps how far the audit trail has been exported, and confirmed, by target and chain. */
export const name = "0077-audit-export";

export const statements = `
create table audit_export (
  target text collate "C" not null,
  organization_id text collate "C" not null,
  sequence bigint not null,
  chain_hash bytea,
  primary key (target, organization_id)
);
`;
