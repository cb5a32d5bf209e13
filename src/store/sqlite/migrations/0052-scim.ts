/** The ids of members and groups at the provider that provisions them by SCIM. */
export const name = "0052-scim";

export const statements = `
alter table member add column external_id text;
alter table member_group add column external_id text;
create index member_by_external_id on member (organization_id, external_id) where external_id is not null;
`;
