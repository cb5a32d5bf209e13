/**
 * Keeps how far the audit trail has been exported, and confirmed, by target and chain; and the index
 * by which retention finds the execution that retries another.
 */
export const name = "0077-audit-export";

export const statements = `
create table audit_export (
  target text not null,
  organization_id text not null,
  sequence integer not null,
  chain_hash blob,
  primary key (target, organization_id)
) strict, without rowid;
create index workflow_execution_by_retried on workflow_execution (retried_execution_id)
where retried_execution_id is not null;
`;
