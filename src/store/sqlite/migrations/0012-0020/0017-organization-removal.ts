/** The release in which the operator can remove an organization. */
export const name = "0017-organization-removal";

/**
 * The record of an organization is protected while the organization exists: its removal deletes the
 * organization's row first.
 */
export const statements = `
drop trigger audit_log_is_not_deleted;
create trigger audit_log_is_not_deleted before delete on audit_log
when old.organization_id is null or exists (select 1 from organization where id = old.organization_id)
begin select raise(abort, 'audit rows are never removed'); end;

drop trigger event_is_only_pruned;
create trigger event_is_only_pruned before delete on event
when exists (select 1 from organization where id = old.organization_id)
  and not exists (select 1 from pruning where pruning.organization_id = old.organization_id)
begin select raise(abort, 'event rows are removed by the pruning job only'); end;
`;
