/** Rows of policies; ../schema.ts unites them and says how to read them. */

export interface OrganizationPoliciesTable {
  organization_id: string;
  /** OrganizationPolicies, only what was set; defaults are added when it is read. */
  body: string;
  /** JSON object of field path to who set it and when. */
  origins: string;
}

export interface SecurityPolicyTable {
  id: string;
  organization_id: string;
  search_text: string;
  body: string;
}
