/** The changes in the repositories of environments, as runners reported it last. */
export const name = "0036-environment-changes";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table environment_changes (
  environment_id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  creator_principal integer not null,
  action_id text references workflow_action (id) on delete cascade,
  refreshed_at integer not null,
  version integer not null,
  body text not null,
  diffs text not null
) strict;
create index environment_changes_by_organization on environment_changes (organization_id);
create index environment_changes_by_action on environment_changes (action_id) where action_id is not null;

create table environment_file_diff (
  environment_id text not null references environment_changes (environment_id) on delete cascade,
  organization_id text not null references organization (id),
  base integer not null,
  place integer not null,
  body text not null,
  primary key (environment_id, base, place)
) strict;

create trigger environment_changes_is_counted_in after insert on environment_changes
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_changes_is_counted_anew after update of body on environment_changes
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_changes_is_counted_out after delete on environment_changes
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;

create trigger environment_file_diff_is_counted_in after insert on environment_file_diff
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_file_diff_is_counted_anew after update of body on environment_file_diff
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_file_diff_is_counted_out after delete on environment_file_diff
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
