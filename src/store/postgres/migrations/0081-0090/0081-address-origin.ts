/** The organization whose SCIM set the address of an account: no other takes the word for its person's. */
export const name = "0081-address-origin";

export const statements = `
alter table account add column scim_organization_id text collate "C";
update account set scim_organization_id = (
  select min(member.organization_id) from member
  where member.account_id = account.id and member.external_id is not null
);
`;
