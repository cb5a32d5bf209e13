import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { changedPermission } from "../../domain/identity/ownership.ts";
import { endsSoon } from "../../domain/identity/token-end.ts";
import type { Keys, TokenKind } from "../../keys.ts";
import {
  type AuthenticatedCaller,
  authenticatedCallerOf,
  refusalOf,
  UNKNOWN,
} from "../../services/call/authenticated-caller.ts";
import { type FoundToken, findTokenByHash, findTokenById } from "../../store/identity/token.ts";
import type { Store } from "../../store/store.ts";
import { fromDomain, writeConnectError } from "../error/error.ts";

/** The last use of a token is written at most this often. */
const LAST_USED_EVERY_MS = 60_000;

/** `Bearer` and one token, as RFC 6750 writes it; the scheme's case does not matter. */
const BEARER = /^bearer +(\S+) *$/i;

/** Kinds of tokens that no header carries: that of a link is for the sign-in page alone. */
const COOKIE_KINDS: ReadonlySet<TokenKind | undefined> = new Set(["session", "link"]);

export interface AuthenticationOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly now: () => number;
  /** Receives errors of the bookkeeping; the call goes on. */
  readonly onUpdateFailure: (error: unknown) => void;
}

/**
 * Authenticates a sender by the header `Authorization`, or without one by its session.
 * @param session the value of the session's cookie, where it counts
 */
export type Authentication = (
  authorization: string | undefined,
  session?: string,
) => Promise<AuthenticatedCaller>;

/**
 * Creates the function that authenticates the caller of a request before its body
 * is read. It reads the store each time: a token that the last commit revoked or
 * blocked is refused.
 */
export function createAuthentication({
  store,
  keys,
  now,
  onUpdateFailure,
}: AuthenticationOptions): Authentication {
  /** Tokens whose last use is being written: for concurrent requests one write is enough. */
  const updating = new Set<string>();
  /** `hash` is given for a token that is still stored under its HMAC, and replaces that. */
  const updateLastUse = ({ id, last_used_at }: FoundToken, at: number, hash?: Uint8Array): void => {
    if ((!hash && at - (last_used_at ?? 0) < LAST_USED_EVERY_MS) || updating.has(id)) return;
    updating.add(id);
    store
      .note("token", id, { last_used_at: at, ...(hash && { hash, hmac_key_id: null }) })
      .catch(onUpdateFailure)
      .finally(() => updating.delete(id));
  };
  /** @param replacement of a hash that is an HMAC */
  const findCaller = async (
    stored: Uint8Array,
    kind: TokenKind | undefined,
    replacement?: Uint8Array,
  ): Promise<AuthenticatedCaller> => {
    const found = await findTokenByHash(store.reader, stored);
    if (!found || found.kind !== kind) return UNKNOWN;
    const at = now();
    const authentication = authenticatedCallerOf(found, at);
    if (authentication.kind === "known") updateLastUse(found, at, replacement);
    return authentication;
  };
  return async (authorization, session) => {
    const isBearer = authorization !== undefined;
    const value = isBearer ? BEARER.exec(authorization)?.[1] : session;
    if (value === undefined) return UNKNOWN;
    const token = keys.readToken(value);
    // Cookies carry sessions and nothing else, and headers no session.
    const isRightKind = isBearer ? !COOKIE_KINDS.has(token?.kind) : token?.kind === "session";
    const kind = isRightKind ? token?.kind : undefined;
    // What is malformed is looked up too, and what was disabled under every hash: all that is refused alike costs
    // the same look-ups, so that the time of the answer tells them apart as little as its text.
    const hash = token?.hash ?? keys.hashOf(value);
    const known = await findCaller(hash, kind);
    if (known.kind !== "unknown") return known;
    for (const mac of keys.tokenMacs(value)) {
      const underMac = await findCaller(mac, kind, hash);
      if (underMac.kind !== "unknown") return underMac;
    }
    return UNKNOWN;
  };
}

/**
 * Creates the function that checks an authenticated caller again and returns why
 * it may not go on with the operation; undefined while it may.
 */
export function createRevalidation({ store, now }: Pick<AuthenticationOptions, "store" | "now">) {
  return async (caller: Caller, operation: string): Promise<ConnectError | undefined> => {
    const authentication = authenticatedCallerOf(await findTokenById(store.reader, caller.tokenId), now());
    if (authentication.kind !== "known") return authError(authentication);
    const permission = changedPermission(caller, authentication.caller, operation);
    if (permission === undefined) return undefined;
    return writeConnectError(ErrorReason.PERMISSION_DENIED, `the permission ${permission} has changed`, {
      permission,
    });
  };
}

/**
 * Returns the end of a caller's token, as an RFC 3339 timestamp, while it is in its last 7 days.
 * @param now milliseconds since 1970 UTC
 */
export function announcedEnd({ tokenEndsAt }: Caller, now: number): string | undefined {
  if (tokenEndsAt === undefined || !endsSoon(tokenEndsAt, now)) return undefined;
  return new Date(tokenEndsAt).toISOString();
}

/** Returns the error for a caller who was refused; undefined for one who was admitted. */
export function authError(authentication: AuthenticatedCaller): ConnectError | undefined {
  if (authentication.kind === "known") return undefined;
  return fromDomain(refusalOf(authentication));
}
