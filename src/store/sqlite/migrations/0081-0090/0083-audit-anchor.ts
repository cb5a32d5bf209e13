/**
 * Keeps where chains of the audit trail begin whose oldest rows have gone. Rows go up to their anchor, when they are older
 * than 90 days and not among the newest 1,000 of their chain; no other, and none of the installation's chain.
 */
export const name = "0083-audit-anchor";

export const statements = `
create table audit_anchor (
  organization_id text primary key,
  sequence integer not null,
  chain_hash blob,
  rows integer not null,
  until_sequence integer not null,
  at integer not null,
  key_id text not null,
  hash blob not null
) strict, without rowid;
create index audit_anchor_by_key on audit_anchor (key_id);

drop trigger audit_log_is_not_deleted;
create trigger audit_log_is_not_deleted before delete on audit_log
when old.organization_id is null or exists (
  select 1 from organization where id = old.organization_id and (
    old.sequence > organization.sequence - 1000
    or old.at > unixepoch() * 1000 - 7776000000
    or not exists (
      select 1 from audit_anchor
      where audit_anchor.organization_id = old.organization_id and old.sequence <= audit_anchor.sequence
    )
  )
)
begin select raise(abort, 'audit rows are never removed'); end;

create trigger audit_anchor_begins_at_nothing before insert on audit_anchor
when new.sequence <> 0 or new.rows <> 0 or new.chain_hash is not null
  or exists (select 1 from audit_anchor where organization_id = new.organization_id)
begin select raise(abort, 'anchors of the audit trail begin before its first row'); end;
create trigger audit_anchor_only_moves_on before update on audit_anchor
when new.organization_id <> old.organization_id
  or new.sequence < old.sequence or new.until_sequence < old.until_sequence or new.sequence > new.until_sequence
  or new.rows - old.rows <> new.sequence - old.sequence
  or (new.sequence = old.sequence
    and (new.until_sequence = old.until_sequence or new.chain_hash is not old.chain_hash))
  or (new.sequence > old.sequence and not exists (
    select 1 from audit_log where organization_id = new.organization_id and sequence = new.sequence
      and hash is new.chain_hash
  ))
begin select raise(abort, 'anchors of the audit trail only move on, to a row that is there'); end;
create trigger audit_anchor_is_not_removed before delete on audit_anchor
when exists (select 1 from organization where id = old.organization_id)
begin select raise(abort, 'anchors of the audit trail are never removed'); end;
`;
