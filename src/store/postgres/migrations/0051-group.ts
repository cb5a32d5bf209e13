/** Groups of the members and service accounts of an organization. */
export const name = "0051-group";

/** The counting triggers are of the form of 0019-baseline. */
export const statements = `
create table member_group (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  name_folded text collate "C" not null,
  provider text collate "C",
  member_count bigint not null,
  search_text text collate "C" not null,
  body text collate "C" not null
);
create unique index member_group_by_name on member_group (organization_id, name_folded);
create index member_group_by_id on member_group (organization_id, id);
create table group_membership (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  group_id text collate "C" not null references member_group (id) on delete cascade deferrable,
  subject_id text collate "C" not null,
  subject_principal bigint not null,
  provider text collate "C"
);
create unique index group_membership_by_group on group_membership (group_id, subject_id);
create index group_membership_by_id on group_membership (group_id, id);
create index group_membership_by_subject on group_membership (organization_id, subject_id, group_id);

create function member_group_is_counted_in() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes + octet_length(new.body) where organization_id = new.organization_id;
  return new;
end $$;
create trigger member_group_is_counted_in after insert on member_group
  for each row execute function member_group_is_counted_in();
create function member_group_is_counted_again() returns trigger language plpgsql as $$ begin
  if octet_length(new.body) <> octet_length(old.body) then
    update organization_storage set bytes = bytes + octet_length(new.body) - octet_length(old.body)
    where organization_id = new.organization_id;
  end if;
  return new;
end $$;
create trigger member_group_is_counted_again after update of body on member_group
  for each row execute function member_group_is_counted_again();
create function member_group_is_counted_out() returns trigger language plpgsql as $$ begin
  update organization_storage set bytes = bytes - octet_length(old.body) where organization_id = old.organization_id;
  return new;
end $$;
create trigger member_group_is_counted_out after delete on member_group
  for each row execute function member_group_is_counted_out();
`;
