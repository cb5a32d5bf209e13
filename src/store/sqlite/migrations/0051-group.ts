/** Groups of the members and service accounts of an organization. */
export const name = "0051-group";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table member_group (
  id text primary key,
  organization_id text not null references organization (id),
  name_folded text not null,
  provider text,
  member_count integer not null,
  search_text text not null,
  body text not null
) strict;
create unique index member_group_by_name on member_group (organization_id, name_folded);
create index member_group_by_id on member_group (organization_id, id);
create table group_membership (
  id text primary key,
  organization_id text not null references organization (id),
  group_id text not null references member_group (id) on delete cascade,
  subject_id text not null,
  subject_principal integer not null,
  provider text
) strict;
create unique index group_membership_by_group on group_membership (group_id, subject_id);
create index group_membership_by_id on group_membership (group_id, id);
create index group_membership_by_subject on group_membership (organization_id, subject_id, group_id);

create trigger member_group_is_counted_in after insert on member_group
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger member_group_is_counted_anew after update of body on member_group
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger member_group_is_counted_out after delete on member_group
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
