import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { accountBlocked, unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { changedPermission } from "../../domain/identity/ownership.ts";
import type { Keys } from "../../keys.ts";
import {
  type AuthenticatedCaller,
  authenticatedCallerOf,
  UNKNOWN,
} from "../../services/call/authenticated-caller.ts";
import { type FoundToken, findTokenByHash, findTokenById } from "../../store/identity/token.ts";
import type { Store } from "../../store/store.ts";
import { fromDomain, writeConnectError } from "../error/error.ts";

/** The last use of a token is written at most this often. */
const LAST_USED_EVERY_MS = 60_000;

/** `Bearer` and one token, as RFC 6750 writes it; the scheme's case does not matter. */
const BEARER = /^bearer +(\S+) *$/i;

export interface AuthenticationOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly now: () => number;
  /** Receives errors of the bookkeeping; the call goes on. */
  readonly onUpdateFailure: (error: unknown) => void;
}

export type Authentication = (authorization: string | undefined) => Promise<AuthenticatedCaller>;

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
  const findByMac = async (value: string): Promise<FoundToken | undefined> => {
    for (const mac of keys.tokenMacs(value)) {
      const found = await findTokenByHash(store.reader, mac);
      if (found) return found;
    }
    return undefined;
  };
  return async (authorization) => {
    const value = BEARER.exec(authorization ?? "")?.[1];
    const token = value === undefined ? undefined : keys.readToken(value);
    if (!token) return UNKNOWN;
    const stored = await findTokenByHash(store.reader, token.hash);
    const found = stored ?? (await findByMac(value as string));
    const at = now();
    if (!found || found.kind !== token.kind) return UNKNOWN;
    const authentication = authenticatedCallerOf(found, at);
    if (authentication.kind === "known") updateLastUse(found, at, stored ? undefined : token.hash);
    return authentication;
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

/** Returns the error for a caller who was refused; undefined for one who was admitted. */
export function authError(authentication: AuthenticatedCaller): ConnectError | undefined {
  if (authentication.kind === "known") return undefined;
  return fromDomain(authentication.kind === "blocked" ? accountBlocked() : unauthenticated());
}
