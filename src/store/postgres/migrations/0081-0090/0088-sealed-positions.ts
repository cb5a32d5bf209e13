/**
 * Seals how far the audit trail has been exported. What was stored without a seal is forgotten: the targets get their
 * rows once more, known by their ids. And the functions that protect the trail and the events look at the tables of
 * their own schema, whatever temporary tables and schemas the session of the change has before it.
 */
export const name = "0088-sealed-positions";

export const statements = `
drop table audit_export;
create table audit_export (
  target text collate "C" not null,
  organization_id text collate "C" not null,
  sequence bigint not null,
  chain_hash bytea,
  key_id text collate "C" not null,
  hash bytea not null,
  primary key (target, organization_id)
);

do $$ declare guard regprocedure; begin
  for guard in
    select distinct t.tgfoid::regprocedure from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = current_schema()::regnamespace and not t.tgisinternal
      and c.relname in ('audit_log', 'audit_anchor', 'event')
  loop
    execute format('alter function %s set search_path = %I, pg_temp', guard, current_schema());
  end loop;
end $$;
`;
