import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { accountBlocked, unauthenticated } from "../../domain/error.ts";
import type { Caller, Role } from "../../domain/identity/caller.ts";
import { requireSameGrant } from "../../domain/identity/ownership.ts";
import { type FoundToken, findTokenById } from "../../store/identity/token.ts";
import type { Reader, WriteTransaction } from "../../store/store.ts";

/** The result of the authentication of a token: the caller, or the reason why there is none. */
export type AuthenticatedCaller =
  | { readonly kind: "known"; readonly caller: Caller }
  | { readonly kind: "unknown" }
  /** The token is valid and its account is blocked. */
  | { readonly kind: "blocked" };

/** The result for a token that is not valid. */
export const UNKNOWN: AuthenticatedCaller = { kind: "unknown" };

/** The stored role of a member who is an administrator. */
const ADMINISTRATOR = 1;

/** Returns the caller that a stored token authenticates at `at` (milliseconds since 1970 UTC). */
export function authenticatedCallerOf(found: FoundToken | undefined, at: number): AuthenticatedCaller {
  if (!found || !isValid(found, at)) return UNKNOWN;
  if (found.blocked_at !== null) return { kind: "blocked" };
  const identity = identityOf(found);
  if (!identity) return UNKNOWN;
  return {
    kind: "known",
    caller: {
      organizationId: found.organization_id,
      subject: create(SubjectSchema, { id: found.subject_id, principal: identity.principal }),
      role: identity.role,
      accountId: found.account_id ?? "",
      tokenId: found.id,
      readOnly: found.read_only === 1,
    },
  };
}

/**
 * Returns an authenticated caller with its present role.
 *
 * @param at milliseconds since 1970 UTC
 * @throws DomainError UNAUTHENTICATED or ACCOUNT_BLOCKED when its token is no longer valid
 */
export async function revalidate(db: Reader, caller: Caller, at: number): Promise<Caller> {
  const authenticated = authenticatedCallerOf(await findTokenById(db, caller.tokenId), at);
  if (authenticated.kind === "blocked") throw accountBlocked();
  if (authenticated.kind === "unknown") throw unauthenticated();
  return authenticated.caller;
}

/**
 * Requires that the caller's access was not revoked since authentication. A request
 * decides how long its body takes, and a caller that was blocked or demoted meanwhile
 * must not write. Called in the transaction itself.
 *
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_BLOCKED or PERMISSION_DENIED
 */
export async function requireNotRevoked(
  tx: WriteTransaction,
  caller: Caller,
  operation: string,
): Promise<void> {
  requireSameGrant(caller, await revalidate(tx.db, caller, tx.now), operation);
}

function isValid(token: FoundToken, at: number): boolean {
  if (token.disabled_at !== null || token.expires_at <= at) return false;
  return token.kind !== "service_account" || ((token.valid_until ?? 0) > at && token.suspended !== 1);
}

/** Returns undefined for a user who is no longer a member. */
function identityOf({ kind, role, left_at }: FoundToken): { role: Role; principal: Principal } | undefined {
  if (kind === "service_account") return { role: kind, principal: Principal.SERVICE_ACCOUNT };
  if (kind === "exchange") return { role: kind, principal: Principal.RUNNER };
  if (kind === "runner") return { role: kind, principal: Principal.RUNNER };
  if (kind === "environment") return { role: kind, principal: Principal.ENVIRONMENT };
  if (role === null || left_at !== null) return undefined;
  return { role: role === ADMINISTRATOR ? "administrator" : "member", principal: Principal.USER };
}
