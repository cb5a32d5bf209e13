/** The rights of groups on single workflows, projects and agent executions. */
export const name = "0060-role-assignment";

export const statements = `
create table role_assignment (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id) deferrable,
  group_id text collate "C" not null references member_group (id) on delete cascade deferrable,
  resource_type bigint not null,
  resource_id text collate "C" not null,
  role bigint not null,
  creator_id text collate "C" not null,
  creator_principal bigint not null,
  created_at bigint not null,
  updated_at bigint not null
);
create unique index role_assignment_by_resource on role_assignment (resource_id, group_id);
create index role_assignment_by_group on role_assignment (group_id, resource_type, resource_id);
`;
