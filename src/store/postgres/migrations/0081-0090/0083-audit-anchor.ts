/**
 * Keeps where chains of the audit trail begin whose oldest rows have gone. Rows go up to their anchor, when they are older
 * than 90 days and not among the newest 1,000 of their chain; no other, and none of the installation's chain.
 */
export const name = "0083-audit-anchor";

export const statements = `
create table audit_anchor (
  organization_id text collate "C" primary key,
  sequence bigint not null,
  chain_hash bytea,
  rows bigint not null,
  until_sequence bigint not null,
  at bigint not null,
  key_id text collate "C" not null,
  hash bytea not null
);
create index audit_anchor_by_key on audit_anchor (key_id);

create or replace function audit_log_is_not_deleted() returns trigger language plpgsql as $$ begin
  if old.organization_id is null or exists (
    select 1 from organization where id = old.organization_id and (
      old.sequence > organization.sequence - 1000
      or old.at > extract(epoch from now()) * 1000 - 7776000000
      or not exists (
        select 1 from audit_anchor
        where audit_anchor.organization_id = old.organization_id and old.sequence <= audit_anchor.sequence
      )
    )
  ) then raise exception 'audit rows are never removed' using errcode = 'raise_exception'; end if;
  return old;
end $$;

create function audit_rows_are_not_truncated() returns trigger language plpgsql as $$ begin
  raise exception 'audit rows are never removed' using errcode = 'raise_exception';
end $$;
create trigger audit_log_is_not_truncated before truncate on audit_log
for each statement execute function audit_rows_are_not_truncated();
create trigger audit_anchor_is_not_truncated before truncate on audit_anchor
for each statement execute function audit_rows_are_not_truncated();

create function audit_anchor_begins_at_nothing() returns trigger language plpgsql as $$ begin
  if new.sequence <> 0 or new.rows <> 0 or new.chain_hash is not null then
    raise exception 'anchors of the audit trail begin before its first row' using errcode = 'raise_exception';
  end if;
  return new;
end $$;
create trigger audit_anchor_begins_at_nothing before insert on audit_anchor
for each row execute function audit_anchor_begins_at_nothing();

create function audit_anchor_only_moves_on() returns trigger language plpgsql as $$ begin
  if new.organization_id <> old.organization_id
    or new.sequence < old.sequence or new.until_sequence < old.until_sequence or new.sequence > new.until_sequence
    or new.rows - old.rows <> new.sequence - old.sequence
    or (new.sequence = old.sequence
      and (new.until_sequence = old.until_sequence or new.chain_hash is distinct from old.chain_hash))
    or (new.sequence > old.sequence and not exists (
      select 1 from audit_log where organization_id = new.organization_id and sequence = new.sequence
        and hash is not distinct from new.chain_hash
    ))
  then
    raise exception 'anchors of the audit trail only move on, to a row that is there' using errcode = 'raise_exception';
  end if;
  return new;
end $$;
create trigger audit_anchor_only_moves_on before update on audit_anchor
for each row execute function audit_anchor_only_moves_on();

create function audit_anchor_is_not_removed() returns trigger language plpgsql as $$ begin
  if exists (select 1 from organization where id = old.organization_id) then
    raise exception 'anchors of the audit trail are never removed' using errcode = 'raise_exception';
  end if;
  return old;
end $$;
create trigger audit_anchor_is_not_removed before delete on audit_anchor
for each row execute function audit_anchor_is_not_removed();
`;
