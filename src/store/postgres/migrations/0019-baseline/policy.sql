create table organization_policies (
  organization_id text collate "C" primary key,
  body text collate "C" not null,
  origins text collate "C" not null
);

create table security_policy (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  search_text text collate "C" not null,
  body text collate "C" not null
);
create index security_policy_by_organization on security_policy (organization_id, id);
