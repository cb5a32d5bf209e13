import { create } from "@bufbuild/protobuf";
import { type Duration, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type PersonalAccessToken, PersonalAccessTokenSchema } from "#gen/service/v1/user_pb.js";
import { permissionDenied, phaseUnsuitable, valueUnusable } from "../error.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Default validity of a token (contract, CreatePersonalAccessTokenRequest): 30 days. */
export const TOKEN_VALID_DEFAULT_MS = 30 * DAY_MS;

/**
 * Maximum validity of a token, also of one that the operator issues (contract, same place): 90
 * days.
 */
export const TOKEN_VALID_MAX_MS = 90 * DAY_MS;

export interface PersonalTokenTemplate {
  readonly userId: string;
  readonly description: string;
  /** Validity of the token, in milliseconds; 0 means the default of 30 days. */
  readonly validForMs: number;
  readonly readOnly: boolean;
  /** Absent for a token that the operator issues from the command line. */
  readonly creator?: Subject;
  /** Account of the creator; absent likewise. */
  readonly creatorAccountId?: string;
}

/**
 * Returns the description of a new token, as of `now` (milliseconds since 1970 UTC).
 * @throws DomainError VALUE_UNUSABLE for a validity that is negative, not a number, or longer than
 * 90 days
 */
export function newPersonalToken(
  { userId, description, validForMs, readOnly, creator }: PersonalTokenTemplate,
  id: string,
  now: number,
): { token: PersonalAccessToken; expiresAtMs: number } {
  const expiresAtMs = endOf(validForMs, now);
  const token = create(PersonalAccessTokenSchema, {
    id,
    userId,
    description,
    ...(creator && { creator }),
    createdAt: timestampFromMs(now),
    expiresAt: timestampFromMs(expiresAtMs),
    readOnly,
  });
  return { token, expiresAtMs };
}

/**
 * Returns the description of a token that is renewed at `now`, under the same value.
 * @param validForMs from now on; 0 means the default of 30 days
 * @throws DomainError PHASE_UNSUITABLE for a disabled token, VALUE_UNUSABLE for an end before its own
 */
export function renewedToken(
  token: PersonalAccessToken,
  { endsAtMs, isDisabled }: { readonly endsAtMs: number; readonly isDisabled: boolean },
  validForMs: number,
  now: number,
): { token: PersonalAccessToken; expiresAtMs: number } {
  if (isDisabled) {
    const message = "the token was disabled and cannot be enabled again: create another one";
    throw phaseUnsuitable("personal access token", "disabled", message);
  }
  const expiresAtMs = endOf(validForMs, now);
  if (expiresAtMs < endsAtMs) {
    const end = new Date(endsAtMs).toISOString();
    throw valueUnusable("validFor", `the token is valid until ${end} and cannot be renewed for less`);
  }
  return { token: { ...token, expiresAt: timestampFromMs(expiresAtMs) }, expiresAtMs };
}

function endOf(validForMs: number, now: number): number {
  if (!(validForMs >= 0 && validForMs <= TOKEN_VALID_MAX_MS)) {
    throw valueUnusable("validFor", "a token is valid for at most 90 days (7776000s)");
  }
  return now + (validForMs || TOKEN_VALID_DEFAULT_MS);
}

/**
 * Returns a duration in milliseconds, rounded up so that the shortest of all does not become 0,
 * which means none.
 */
export function validForMs(validFor: Duration | undefined): number {
  return validFor ? Number(validFor.seconds) * 1000 + Math.ceil(validFor.nanos / 1e6) : 0;
}

/**
 * Returns the user that a request for a token names: the caller, also when the request names
 * nobody.
 * @throws DomainError PERMISSION_DENIED for anybody else
 */
export function requireOwnUserId(requested: string, callerId: string): string {
  if (requested !== "" && requested !== callerId) {
    throw permissionDenied(
      "create_personal_access_token",
      "personal access tokens are created by the user that they act for",
    );
  }
  return callerId;
}
