import { permissionDenied } from "../../error.ts";
import { domainOf } from "./provider.ts";

/**
 * Requires that people come into an organization otherwise than by SCIM.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireJoiningAllowed(policies: {
  readonly restrictAccountCreationToScim?: boolean | undefined;
}): void {
  if (!policies.restrictAccountCreationToScim) return;
  throw permissionDenied(
    "join_organization",
    "the organization's policy restrictAccountCreationToScim lets SCIM alone bring in people",
  );
}

/**
 * Returns whether an account joins an organization by an address that a provider has verified.
 * @param inviteDomains of the organization, in lower case
 */
export function joinsByDomain(
  inviteDomains: readonly string[],
  identities: readonly { readonly email: string; readonly email_verified: number }[],
): boolean {
  return identities.some(
    ({ email, email_verified }) => email_verified === 1 && inviteDomains.includes(domainOf(email)),
  );
}
