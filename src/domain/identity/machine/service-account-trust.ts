import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  type ServiceAccountTrust,
  type ServiceAccountTrust_Condition,
  ServiceAccountTrustSchema,
} from "#gen/service/v1/service_account_pb.js";
import type { CreateServiceAccountTrustRequest } from "#gen/service/v1/service_account_service_pb.js";
import { phaseUnsuitable, valueUnusable } from "../../error.ts";

/** Maximum number of trusts of a service account. */
const MAX_TRUSTS = 25;

/** An issuer of the settings. */
export interface TrustableIssuer {
  readonly issuer: string;
  readonly audiences: readonly string[];
}

/** The characters that may precede the `*` of a condition: both separate the parts of claims of CI systems. */
const PREFIX = /^[^*]*[^*]([/:])\*$/;

/**
 * Returns a new trust.
 * @param issuers issuers of the settings; empty if the operator has configured none yet
 * @throws DomainError VALUE_UNUSABLE
 */
export function newServiceAccountTrust(
  { serviceAccountId, issuer, audience, conditions }: CreateServiceAccountTrustRequest,
  issuers: readonly TrustableIssuer[],
  { id, creator, now }: { readonly id: string; readonly creator: Subject; readonly now: number },
): ServiceAccountTrust {
  requireTrustable(issuer, audience, issuers);
  for (const [index, { value }] of conditions.entries()) {
    if (!value.includes("*") || PREFIX.test(value)) continue;
    throw valueUnusable(
      `conditions[${index}].value`,
      "a * is allowed only at the end, after the / or : up to which a claim is compared; without a *, the whole claim is compared",
    );
  }
  return create(ServiceAccountTrustSchema, {
    ...{ id, serviceAccountId, issuer, audience, conditions, creator },
    createdAt: timestampFromMs(now),
  });
}

function requireTrustable(issuer: string, audience: string, issuers: readonly TrustableIssuer[]): void {
  if (issuers.length === 0) return;
  const known = issuers.find((each) => each.issuer === issuer);
  if (!known) {
    const names = issuers.map((each) => each.issuer).join(", ");
    throw valueUnusable("issuer", `the settings of the server name no such issuer; there are ${names}`);
  }
  if (known.audiences.includes(audience)) return;
  const names = known.audiences.join(", ");
  throw valueUnusable(
    "audience",
    `the settings of the server name no such audience of the issuer; there are ${names}`,
  );
}

/** Requires that a service account has room for another trust. @throws DomainError PHASE_UNSUITABLE */
export function requireRoomForTrust(count: number): void {
  if (count < MAX_TRUSTS) return;
  throw phaseUnsuitable(
    "service account",
    "TRUSTS",
    `a service account has at most ${MAX_TRUSTS} trusts: delete one`,
  );
}

/** Returns whether the claims of a token are what a trust asks for. */
export function fitsConditions(
  { conditions }: Pick<ServiceAccountTrust, "conditions">,
  claims: Readonly<Record<string, unknown>>,
): boolean {
  return conditions.length > 0 && conditions.every((condition) => fits(condition, claims));
}

function fits(
  { claim, value }: ServiceAccountTrust_Condition,
  claims: Readonly<Record<string, unknown>>,
): boolean {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (typeof found !== "string" && typeof found !== "number" && typeof found !== "boolean") return false;
  // Read as JSON, other numbers of the issuer's are the same as such a large one.
  if (typeof found === "number" && Math.abs(found) > Number.MAX_SAFE_INTEGER) return false;
  const text = String(found);
  if (!PREFIX.test(value)) return text === value;
  const prefix = value.slice(0, -1);
  return text.length > prefix.length && text.startsWith(prefix);
}
