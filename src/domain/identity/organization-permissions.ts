import { ADMINISTRATORS, MEMBERS, PEOPLE, type Permission, SELF } from "./grants.ts";

const OWN_TOKENS = "the caller's own tokens";
const OWN_SESSIONS = "the caller's own sessions";
const INVITED = "everybody who has the id of the invite, also of another organization";

/** Rows of the permissions table for organizations and their members. */
export const ORGANIZATION_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "OrganizationService/CreateOrganization": {
    permission: "create_organization",
    grants: PEOPLE,
    condition: "the setting --allow-organization-creation",
  },
  "OrganizationService/GetOrganization": { permission: "get_organization", grants: MEMBERS },
  "OrganizationService/ListMembers": { permission: "list_members", grants: MEMBERS },
  "OrganizationService/SetRole": { permission: "set_role", grants: ADMINISTRATORS },
  "OrganizationService/RemoveMember": { permission: "remove_member", grants: ADMINISTRATORS },
  "OrganizationService/UpdateOrganization": { permission: "update_organization", grants: ADMINISTRATORS },
  "OrganizationService/CreateOrganizationInvite": {
    permission: "create_organization_invite",
    grants: ADMINISTRATORS,
  },
  "OrganizationService/GetOrganizationInvite": {
    permission: "get_organization_invite",
    grants: ADMINISTRATORS,
  },
  "OrganizationService/GetOrganizationInviteSummary": {
    permission: "get_organization_invite_summary",
    grants: PEOPLE,
    condition: INVITED,
  },
  "OrganizationService/JoinOrganization": {
    permission: "join_organization",
    grants: PEOPLE,
    condition: `${INVITED}; by the id of the organization, an account with a verified address in its invite domains`,
  },
  "OrganizationService/LeaveOrganization": {
    permission: "leave_organization",
    grants: SELF,
    own: "the caller's own membership",
  },
  "OrganizationService/GetOrganizationPolicies": {
    permission: "get_organization_policies",
    grants: MEMBERS,
  },
  "OrganizationService/PreviewOrganizationPolicies": {
    permission: "update_organization_policies",
    grants: ADMINISTRATORS,
  },
  "OrganizationService/PreviewRetention": {
    permission: "update_organization_policies",
    grants: ADMINISTRATORS,
  },
  "OrganizationService/GetServerHealth": { permission: "get_server_health", grants: ADMINISTRATORS },
  "OrganizationService/UpdateOrganizationPolicies": {
    permission: "update_organization_policies",
    grants: ADMINISTRATORS,
  },
};

/** Rows of the permissions table for users and their tokens. */
export const USER_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "UserService/GetAuthenticatedUser": {
    permission: "get_authenticated_user",
    grants: SELF,
    own: "the caller itself",
  },
  "UserService/GetUser": { permission: "get_user", grants: MEMBERS },
  "UserService/SetSuspended": {
    permission: "set_suspended",
    grants: ADMINISTRATORS,
    condition: "another member than the caller",
  },
  "UserService/CreatePersonalAccessToken": {
    permission: "create_personal_access_token",
    grants: SELF,
    own: OWN_TOKENS,
  },
  "UserService/ListPersonalAccessTokens": {
    permission: "list_personal_access_tokens",
    grants: SELF,
    own: OWN_TOKENS,
  },
  "UserService/RenewPersonalAccessToken": {
    permission: "renew_personal_access_token",
    grants: SELF,
    own: OWN_TOKENS,
  },
  "UserService/ListSessions": { permission: "list_sessions", grants: SELF, own: OWN_SESSIONS },
  "UserService/RevokeSession": { permission: "revoke_session", grants: SELF, own: OWN_SESSIONS },
  "UserService/DeletePersonalAccessToken": {
    permission: "delete_personal_access_token",
    grants: SELF,
    own: OWN_TOKENS,
  },
};
