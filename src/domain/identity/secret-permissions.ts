import { MEMBERS, type Permission } from "./grants.ts";

const SECRETS =
  "of the organization and of service accounts: administrators; of a project: administrators and who made it; of a user: that user alone";

/** Rows of the permissions table for secrets. */
export const SECRET_PERMISSIONS: Readonly<Record<string, Permission>> = {
  "SecretService/CreateSecret": { permission: "create_secret", grants: MEMBERS, condition: SECRETS },
  "SecretService/UpdateSecretValue": { permission: "update_secret", grants: MEMBERS, condition: SECRETS },
  "SecretService/ListSecrets": {
    permission: "list_secrets",
    grants: MEMBERS,
    condition:
      "secrets of the organization and its projects, and the caller's own; administrators: those of service accounts",
  },
  "SecretService/DeleteSecret": { permission: "delete_secret", grants: MEMBERS, condition: SECRETS },
};
