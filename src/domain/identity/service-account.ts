import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  type ServiceAccount,
  ServiceAccountSchema,
  type ServiceAccountToken,
  ServiceAccountTokenSchema,
} from "#gen/service/v1/service_account_pb.js";
import type { CreateServiceAccountRequest } from "#gen/service/v1/service_account_service_pb.js";
import { permissionDenied, phaseUnsuitable, valueUnusable } from "../error.ts";
import { requireTimestampInRange, roundedUpMs } from "../timestamp-range.ts";
import type { Caller } from "./caller.ts";
import { TOKEN_VALID_DEFAULT_MS } from "./personal-token.ts";

/** Values of a new service account that the request does not contain. */
export interface ServiceAccountCreationContext {
  readonly id: string;
  readonly organizationId: string;
  readonly creator: Subject;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * Returns a new service account.
 * @throws DomainError VALUE_UNUSABLE when the end of its validity is not in the future
 */
export function newServiceAccount(
  { name, description, validUntil, provisioning }: CreateServiceAccountRequest,
  { id, organizationId, creator, now }: ServiceAccountCreationContext,
): { serviceAccount: ServiceAccount; validUntilMs: number } {
  requireTimestampInRange("validUntil", validUntil);
  const validUntilMs = roundedUpMs(validUntil);
  if (validUntilMs <= now) throw valueUnusable("validUntil", "validUntil must be in the future");
  const serviceAccount = create(ServiceAccountSchema, {
    id,
    organizationId,
    name,
    description,
    creator,
    createdAt: timestampFromMs(now),
    ...(validUntil && { validUntil }),
    provisioning,
  });
  return { serviceAccount, validUntilMs };
}

/**
 * Returns whether a service account is suspended at `now`; both times in milliseconds since 1970
 * UTC.
 */
export function isServiceAccountSuspended(validUntilMs: number, now: number): boolean {
  return validUntilMs <= now;
}

/**
 * Requires that a caller is a service account that provisions its organization.
 * @param account undefined for any other caller
 * @throws DomainError PERMISSION_DENIED
 */
export function requireProvisioning(account: Pick<ServiceAccount, "provisioning"> | undefined): void {
  if (account?.provisioning) return;
  throw permissionDenied(
    "provision",
    "SCIM accepts only the tokens of service accounts that were created with provisioning",
  );
}

/** Returns the service account as which a caller itself acts. @throws DomainError VALUE_UNUSABLE for any other caller */
export function requireOwnServiceAccountId({ role, subject }: Pick<Caller, "role" | "subject">): string {
  if (role === "service_account") return subject.id;
  throw valueUnusable("serviceAccountId", "name the service account that the token is to act for");
}

/**
 * Requires that a caller's own token is one that somebody made: a short one would outlive itself in what it makes.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireLastingToken(kind: string | undefined): void {
  if (kind !== "machine") return;
  throw permissionDenied(
    "create_service_account_token",
    "a token that was exchanged for that of an issuer cannot create another",
  );
}

/** The values that a new token of a service account is created from. */
export interface ServiceAccountTokenTemplate {
  readonly serviceAccountId: string;
  readonly description: string;
  /** Validity of the token, in milliseconds; 0 means the default of 30 days. */
  readonly validForMs: number;
  /** Undefined when the chain of creators begins with an operator's token. */
  readonly creator: Subject | undefined;
}

/**
 * Returns the description of a new token of a service account, which never outlives the account.
 * @param validUntilMs end of the service account's validity, in milliseconds since 1970 UTC
 * @throws DomainError PHASE_UNSUITABLE while the service account is suspended
 */
export function newServiceAccountToken(
  { serviceAccountId, description, validForMs, creator }: ServiceAccountTokenTemplate,
  validUntilMs: number,
  { id, now }: { readonly id: string; readonly now: number },
): { token: ServiceAccountToken; expiresAtMs: number } {
  if (isServiceAccountSuspended(validUntilMs, now)) {
    throw phaseUnsuitable("service account", "SUSPENDED", "the service account is suspended");
  }
  const expiresAtMs = Math.min(now + (validForMs || TOKEN_VALID_DEFAULT_MS), validUntilMs);
  const token = create(ServiceAccountTokenSchema, {
    id,
    serviceAccountId,
    description,
    ...(creator && { creator }),
    createdAt: timestampFromMs(now),
    expiresAt: timestampFromMs(expiresAtMs),
  });
  return { token, expiresAtMs };
}
