/** Invites to organizations, whose verified mail domains join, and since when members are suspended. */
export const name = "0043-organization-invite";

export const statements = `
alter table member add column suspended_at bigint;
alter table organization add column invite_domains text collate "C" not null default '[]';
create table organization_invite (
  id text collate "C" primary key,
  organization_id text collate "C" not null unique references organization (id) deferrable,
  hash bytea not null unique,
  key_id text collate "C" not null,
  sealed bytea not null,
  role bigint not null,
  max_uses bigint not null,
  uses bigint not null,
  expires_at bigint not null
);
create index organization_invite_by_key on organization_invite (key_id);
`;
