/** Rows of policies; ../schema.ts combines them and explains how to read them. */

export interface OrganizationPoliciesTable {
  organization_id: string;
  /** OrganizationPolicies, only those that were set; defaults are added when it is read. */
  body: string;
  /** JSON object from field path to the subject that set it and the time. */
  origins: string;
}

export interface SecurityPolicyTable {
  id: string;
  organization_id: string;
  search_text: string;
  body: string;
}

export interface SecretTable {
  id: string;
  organization_id: string;
  /** SecretOwner.kind. */
  owner_kind: string;
  /** Id of the organization, project, user or service account. */
  owner_id: string;
  name: string;
  /** Length of the value in UTF-8. */
  value_bytes: number;
  key_id: string;
  sealed: Uint8Array;
  /** Secret. */
  body: string;
}
