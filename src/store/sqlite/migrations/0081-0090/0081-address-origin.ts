/** The organization whose SCIM set the address of an account: no other takes the word for its person's. */
export const name = "0081-address-origin";

export const statements = `
alter table account add column scim_organization_id text;
update account set scim_organization_id = provisioned.organization_id
from (
  select account_id, min(organization_id) as organization_id from member
  where external_id is not null group by account_id
) as provisioned
where provisioned.account_id = account.id;
`;
