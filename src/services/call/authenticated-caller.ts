import { create } from "@bufbuild/protobuf";
import type { Kysely } from "kysely";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { accountBlocked, permissionDenied, unauthenticated } from "../../domain/error.ts";
import type { Caller, Role } from "../../domain/identity/caller.ts";
import { permissionOf } from "../../domain/identity/permissions.ts";
import { type FoundToken, findTokenById } from "../../store/identity/token.ts";
import type { Schema } from "../../store/schema.ts";
import type { WriteTransaction } from "../../store/store.ts";

/** What a token says of who carries it: who that is, or why it is nobody known. */
export type AuthenticatedCaller =
  | { readonly kind: "known"; readonly caller: Caller }
  | { readonly kind: "unknown" }
  /** The token is good and the account behind it is cut off. */
  | { readonly kind: "blocked" };

export const UNKNOWN: AuthenticatedCaller = { kind: "unknown" };

/** Role of a member that is an administrator, as its row has it. */
const ADMINISTRATOR = 1;

/** Judges a token that was found, as of `at` (milliseconds since 1970 UTC). */
export function authenticatedCallerOf(found: FoundToken | undefined, at: number): AuthenticatedCaller {
  if (!found || !holds(found, at)) return UNKNOWN;
  if (found.blocked_at !== null) return { kind: "blocked" };
  const acting = actingAs(found);
  if (!acting) return UNKNOWN;
  return {
    kind: "known",
    caller: {
      organizationId: found.organization_id,
      subject: create(SubjectSchema, { id: found.subject_id, principal: acting.principal }),
      role: acting.role,
      accountId: found.account_id ?? "",
      tokenId: found.id,
      readOnly: found.read_only === 1,
    },
  };
}

/**
 * Returns a caller that was let in as it is now, such as with another role.
 *
 * @param at milliseconds since 1970 UTC
 * @throws DomainError UNAUTHENTICATED or ACCOUNT_BLOCKED when its token opens nothing any longer
 */
export async function revalidate(db: Kysely<Schema>, caller: Caller, at: number): Promise<Caller> {
  const admission = authenticatedCallerOf(await findTokenById(db, caller.tokenId), at);
  if (admission.kind === "blocked") throw accountBlocked();
  if (admission.kind === "unknown") throw unauthenticated();
  return admission.caller;
}

/** The permission of an operation when what the caller may do of it is no longer what the gate saw. */
export function changedPermission(caller: Caller, now: Caller, operation: string): string | undefined {
  const needed = permissionOf(operation);
  if (!needed || needed.grants[now.role] === needed.grants[caller.role]) return undefined;
  return needed.permission;
}

/**
 * A request chooses how long its body takes after the gate; what was revoked,
 * blocked or demoted meanwhile must not write. Asked in the transaction itself.
 *
 * @throws DomainError UNAUTHENTICATED, ACCOUNT_BLOCKED or PERMISSION_DENIED
 */
export async function requireNotRevoked(
  tx: WriteTransaction,
  caller: Caller,
  operation: string,
): Promise<void> {
  const permission = changedPermission(caller, await revalidate(tx.db, caller, tx.now), operation);
  if (permission !== undefined)
    throw permissionDenied(permission, `the permission ${permission} has changed`);
}

function holds(token: FoundToken, at: number): boolean {
  if (token.disabled_at !== null || token.expires_at <= at) return false;
  return token.kind !== "service_account" || ((token.valid_until ?? 0) > at && token.suspended !== 1);
}

/** Undefined for a user who is a member no longer. */
function actingAs({ kind, role, left_at }: FoundToken): { role: Role; principal: Principal } | undefined {
  if (kind === "service_account") return { role: kind, principal: Principal.SERVICE_ACCOUNT };
  if (kind === "exchange") return { role: kind, principal: Principal.RUNNER };
  if (kind === "runner") return { role: kind, principal: Principal.RUNNER };
  if (kind === "environment") return { role: kind, principal: Principal.ENVIRONMENT };
  if (role === null || left_at !== null) return undefined;
  return { role: role === ADMINISTRATOR ? "administrator" : "member", principal: Principal.USER };
}
