import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { accountBlocked, type DomainError, unauthenticated } from "../../domain/error.ts";
import type { Caller, Role } from "../../domain/identity/caller.ts";
import { requireSameGrant } from "../../domain/identity/ownership.ts";
import { hasSessionEnded } from "../../domain/identity/session.ts";
import { isWarnedOf, tokenExpired } from "../../domain/identity/token-end.ts";
import { type FoundToken, findTokenById } from "../../store/identity/token.ts";
import type { Reader, WriteTransaction } from "../../store/store.ts";

/** The result of the authentication of a token: the caller, or the reason why there is none. */
export type AuthenticatedCaller =
  | { readonly kind: "known"; readonly caller: Caller }
  | { readonly kind: "unknown" }
  /** The token is valid except that it ended at `endedAt` (milliseconds since 1970 UTC). */
  | { readonly kind: "expired"; readonly endedAt: number }
  /** The token is valid, but its account is blocked. */
  | { readonly kind: "blocked" };

/** The result for an invalid token. */
export const UNKNOWN: AuthenticatedCaller = { kind: "unknown" };

/** The stored role of a member who is an administrator. */
const ADMINISTRATOR = 1;

/** Returns the caller that a stored token authenticates at `at` (milliseconds since 1970 UTC). */
export function authenticatedCallerOf(found: FoundToken | undefined, at: number): AuthenticatedCaller {
  if (!found || isRevoked(found, at)) return UNKNOWN;
  // A session cannot be renewed, so its error does not distinguish expiry.
  if (found.kind === "session" && hasSessionEnded(found.expires_at, found.last_used_at, at)) return UNKNOWN;
  const hasEnded = found.expires_at <= at;
  if (found.blocked_at !== null) return hasEnded ? UNKNOWN : { kind: "blocked" };
  const identity = identityOf(found);
  if (!identity) return UNKNOWN;
  if (hasEnded) return { kind: "expired", endedAt: found.expires_at };
  return {
    kind: "known",
    caller: {
      organizationId: found.organization_id,
      subject: create(SubjectSchema, { id: found.subject_id, principal: identity.principal }),
      role: identity.role,
      accountId: found.account_id ?? "",
      tokenId: found.id,
      readOnly: found.read_only === 1,
      ...(isWarnedOf(found.kind) && { tokenEndsAt: found.expires_at }),
    },
  };
}

/**
 * Returns an authenticated caller with its current role.
 *
 * @param at milliseconds since 1970 UTC
 * @throws DomainError UNAUTHENTICATED, TOKEN_EXPIRED or ACCOUNT_BLOCKED when its token is no longer valid
 */
export async function revalidate(db: Reader, caller: Caller, at: number): Promise<Caller> {
  const authenticated = authenticatedCallerOf(await findTokenById(db, caller.tokenId), at);
  if (authenticated.kind !== "known") throw refusalOf(authenticated);
  return authenticated.caller;
}

/** Returns the error for a caller who was refused. */
export function refusalOf(refused: Exclude<AuthenticatedCaller, { kind: "known" }>): DomainError {
  if (refused.kind === "blocked") return accountBlocked();
  return refused.kind === "expired" ? tokenExpired(refused.endedAt) : unauthenticated();
}

/**
 * Requires that the caller's access was not revoked since authentication. The client controls how long sending the
 * body takes, and a caller that was blocked or demoted in the meantime must not write. Call it inside the
 * transaction.
 *
 * @throws DomainError UNAUTHENTICATED, TOKEN_EXPIRED, ACCOUNT_BLOCKED or PERMISSION_DENIED
 */
export async function requireNotRevoked(
  tx: WriteTransaction,
  caller: Caller,
  operation: string,
): Promise<void> {
  requireSameGrant(caller, await revalidate(tx.db, caller, tx.now), operation);
}

/** Returns whether a token is invalid for a reason other than its expiry. */
function isRevoked(token: FoundToken, at: number): boolean {
  if (token.disabled_at !== null || token.suspended_at !== null) return true;
  return isOfServiceAccount(token.kind) && ((token.valid_until ?? 0) <= at || token.suspended === 1);
}

function isOfServiceAccount(kind: FoundToken["kind"]): boolean {
  return kind === "service_account" || kind === "machine";
}

/** Returns the role and principal, or undefined for a user who is no longer a member. */
function identityOf({ kind, role, left_at }: FoundToken): { role: Role; principal: Principal } | undefined {
  if (isOfServiceAccount(kind)) return { role: "service_account", principal: Principal.SERVICE_ACCOUNT };
  if (kind === "exchange") return { role: kind, principal: Principal.RUNNER };
  if (kind === "runner") return { role: kind, principal: Principal.RUNNER };
  if (kind === "environment") return { role: kind, principal: Principal.ENVIRONMENT };
  if (role === null || left_at !== null) return undefined;
  return { role: role === ADMINISTRATOR ? "administrator" : "member", principal: Principal.USER };
}
