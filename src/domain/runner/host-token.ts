import { clone, create, equals } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type HostAuthenticationToken,
  HostAuthenticationTokenSchema,
  HostAuthenticationTokenSource as Source,
} from "#gen/service/v1/runner_configuration_pb.js";
import {
  type CreateHostAuthenticationTokenRequest,
  type UpdateHostAuthenticationTokenRequest,
  UpdateHostAuthenticationTokenRequestSchema,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { valueUnusable } from "../error.ts";
import { maskedPaths } from "../field-mask.ts";
import { credentialHost } from "./credential-host.ts";

/** Last second that a timestamp in the contract's JSON format can express: the end of the year 9999. */
const LAST_SECOND = 253_402_300_799n;

/** The secrets of a host token. */
export interface HostTokenSecrets {
  readonly token: string;
  /** Absent when the token is not refreshed. */
  readonly refreshToken?: string;
}

/**
 * Returns the subject that a new token belongs to: the request's subject, the user of the deprecated field, or the
 * caller.
 * @throws DomainError VALUE_UNUSABLE when the first two differ or the subject is of a kind without tokens
 */
export function hostTokenSubject(
  { subject: named, userId }: Pick<CreateHostAuthenticationTokenRequest, "subject" | "userId">,
  caller: Subject,
): Subject {
  const user = userId ? create(SubjectSchema, { id: userId, principal: Principal.USER }) : undefined;
  if (named && user && !equals(SubjectSchema, named, user)) {
    throw valueUnusable("userId", "userId and subject name different subjects: leave userId out");
  }
  const subject = named ?? user ?? caller;
  if (subject.id === "") throw valueUnusable("subject.id", "the subject needs an id");
  if (subject.principal !== Principal.USER && subject.principal !== Principal.SERVICE_ACCOUNT) {
    throw valueUnusable("subject.principal", "host tokens belong to users and service accounts");
  }
  return subject;
}

/**
 * Returns the description of a new token, as of `now` (milliseconds since 1970 UTC).
 * @throws DomainError VALUE_UNUSABLE when it has already expired, or its host is invalid
 */
export function newHostToken(
  req: CreateHostAuthenticationTokenRequest,
  subject: Subject,
  id: string,
  now: number,
): HostAuthenticationToken {
  if (req.expiresAt) requireUnexpired(req.expiresAt, now);
  const { runnerId, integrationId, scopes } = req;
  return create(HostAuthenticationTokenSchema, {
    id,
    runnerId,
    userId: subject.principal === Principal.USER ? subject.id : "",
    host: credentialHost(req.host),
    source: req.source || (req.refreshToken ? Source.OAUTH : Source.PAT),
    ...(req.expiresAt && { expiresAt: req.expiresAt }),
    integrationId,
    scopes,
    subject,
  });
}

/** A token after an update; undefined fields keep their stored values. */
export interface HostTokenUpdate {
  readonly token: HostAuthenticationToken;
  /** Credential that replaces the stored one. */
  readonly newToken?: string;
  /** Refresh token that replaces the stored one; empty removes the stored one. */
  readonly newRefreshToken?: string;
}

/**
 * Returns the token after an update; undefined when nothing changes.
 * @throws DomainError VALUE_UNUSABLE for an expiry in the past, FIELD_MASK_INVALID for a mask that names a field that
 * cannot be cleared
 */
export function updatedHostToken(
  present: HostAuthenticationToken,
  req: UpdateHostAuthenticationTokenRequest,
  now: number,
): HostTokenUpdate | undefined {
  const named = maskedFields(req);
  const token = clone(HostAuthenticationTokenSchema, present);
  if (req.expiresAt) {
    requireUnexpired(req.expiresAt, now);
    token.expiresAt = req.expiresAt;
  } else if (named.has("expires_at")) {
    delete token.expiresAt;
  }
  if (req.scopes.length > 0 || named.has("scopes")) token.scopes = [...req.scopes];
  const newRefreshToken = req.refreshToken ?? (named.has("refresh_token") ? "" : undefined);
  const isSame = equals(HostAuthenticationTokenSchema, present, token);
  if (isSame && req.token === undefined && newRefreshToken === undefined) return undefined;
  return {
    token,
    ...(req.token !== undefined && { newToken: req.token }),
    ...(newRefreshToken !== undefined && { newRefreshToken }),
  };
}

/** Returns the fields that the mask names. A credential can be replaced but not cleared: delete the token instead. */
function maskedFields({ updateMask, token }: UpdateHostAuthenticationTokenRequest): ReadonlySet<string> {
  const fixed = token === undefined ? ["id", "token"] : ["id"];
  return maskedPaths(UpdateHostAuthenticationTokenRequestSchema, updateMask, fixed);
}

function requireUnexpired(expiresAt: Timestamp, now: number): void {
  const { seconds, nanos } = expiresAt;
  if (seconds > LAST_SECOND || nanos < 0 || nanos > 999_999_999) {
    throw valueUnusable("expiresAt", "expiresAt must be a time before the year 10000");
  }
  if (timestampMs(expiresAt) > now) return;
  throw valueUnusable("expiresAt", "expiresAt has passed: a token that expired cannot be used any more");
}
