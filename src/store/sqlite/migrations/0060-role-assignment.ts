/** The rights of groups on single workflows, projects and agent executions. */
export const name = "0060-role-assignment";

export const statements = `
create table role_assignment (
  id text primary key,
  organization_id text not null references organization (id),
  group_id text not null references member_group (id) on delete cascade,
  resource_type integer not null,
  resource_id text not null,
  role integer not null,
  creator_id text not null,
  creator_principal integer not null,
  created_at integer not null,
  updated_at integer not null
) strict;
create unique index role_assignment_by_resource on role_assignment (resource_id, group_id);
create index role_assignment_by_group on role_assignment (group_id, resource_type, resource_id);
`;
