import { accountBlocked, notFound, permissionDenied, phaseUnsuitable, unauthenticated } from "../../error.ts";
import type { SignInRules } from "./provider.ts";

/**
 * Returns the ids of the providers that sign an account in to an organization: where the account has an identity at one,
 * that decides at each sign-in whether the person may come in, and in which role.
 *
 * @param issuers of the account's identities
 */
export function providersInto(
  organizationId: string,
  issuers: ReadonlySet<string>,
  providers: readonly {
    readonly issuer: string;
    readonly rules: Pick<SignInRules, "id" | "organizationId">;
  }[],
): readonly string[] {
  return providers
    .filter(({ issuer, rules }) => rules.organizationId === organizationId && issuers.has(issuer))
    .map(({ rules }) => rules.id);
}

/** Requires a session. @throws DomainError UNAUTHENTICATED */
export function requireSignedIn<T>(present: T | undefined): T {
  if (present === undefined) throw unauthenticated();
  return present;
}

/** Requires that no provider signs a person in to an organization. @throws DomainError PHASE_UNSUITABLE */
export function requireNoProvider(providerIds: readonly string[]): void {
  const [first] = providerIds;
  if (first === undefined) return;
  throw phaseUnsuitable(
    "session",
    "provider_signs_in",
    `a provider signs you in to this organization: sign in with ${first}`,
  );
}

/**
 * Requires a session that a person began, with a link or at a provider. One that began with an access token has no more
 * rights than that, which is of one organization.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function requireSwitchable<
  T extends { readonly parent_id: string | null; readonly read_only: number },
>(session: T | undefined): T {
  if (session && session.parent_id === null && session.read_only === 0) return session;
  throw permissionDenied(
    "switch_organization",
    "this session began with an access token, which is of one organization: sign in with a provider, or with a link that " +
      "the server's operator makes (chartroom member sign-in)",
  );
}

/** Requires an account that is not blocked, and its active member. @throws DomainError ACCOUNT_BLOCKED, NOT_FOUND */
export function requireMaySwitch<
  T extends { readonly left_at: number | null; readonly suspended_at: number | null },
>(account: { readonly blocked_at: number | null } | undefined, member: T | undefined): T {
  if (!account || account.blocked_at !== null) throw accountBlocked();
  if (!member || member.left_at !== null || member.suspended_at !== null) throw notFound("organization");
  return member;
}
