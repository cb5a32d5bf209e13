/** The connections that work in environments has asked for, as runners report them. */
export const name = "0057-environment-connection";

/** The counting triggers are of the form of 0016-organization-storage. */
export const statements = `
create table environment_egress (
  environment_id text primary key,
  organization_id text not null references organization (id),
  creator_id text not null,
  creator_principal integer not null,
  action_id text references workflow_action (id) on delete cascade,
  refused integer not null,
  allowed integer not null,
  left_out integer not null
) strict;
create index environment_egress_by_organization on environment_egress (organization_id);
create index environment_egress_by_action on environment_egress (action_id) where action_id is not null;

create table environment_connection (
  environment_id text not null references environment_egress (environment_id) on delete cascade,
  organization_id text not null references organization (id),
  place integer not null,
  id text not null,
  body text not null,
  primary key (environment_id, place),
  unique (environment_id, id)
) strict;

create trigger environment_connection_is_counted_in after insert on environment_connection
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_connection_is_counted_anew after update of body on environment_connection
when (ifnull(octet_length(new.body), 0)) <> (ifnull(octet_length(old.body), 0))
begin update organization_storage set bytes = bytes + (ifnull(octet_length(new.body), 0)) - (ifnull(octet_length(old.body), 0)) where organization_id = new.organization_id; end;
create trigger environment_connection_is_counted_out after delete on environment_connection
begin update organization_storage set bytes = bytes + -(ifnull(octet_length(old.body), 0)) where organization_id = old.organization_id; end;
`;
