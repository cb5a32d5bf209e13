/** Invites to organizations, whose verified mail domains join, and since when members are suspended. */
export const name = "0043-organization-invite";

export const statements = `
alter table member add column suspended_at integer;
alter table organization add column invite_domains text not null default '[]';
create table organization_invite (
  id text primary key,
  organization_id text not null unique references organization (id),
  hash blob not null unique,
  key_id text not null,
  sealed blob not null,
  role integer not null,
  max_uses integer not null,
  uses integer not null,
  expires_at integer not null
) strict;
create index organization_invite_by_key on organization_invite (key_id);
`;
