import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller, Role } from "../domain/caller.ts";
import { accountBlocked, unauthenticated } from "../domain/error.ts";
import { permissionOf } from "../domain/permissions.ts";
import type { Keys } from "../keys.ts";
import type { Store } from "../store/store.ts";
import { type FoundToken, findTokenByHash, findTokenById } from "../store/token.ts";
import { answer, fromDomain } from "./error.ts";

/** The last use of a token is written at most this often. */
const LAST_USED_EVERY_MS = 60_000;

/** `Bearer` and one token, as RFC 6750 writes it; the scheme's case does not matter. */
const BEARER = /^bearer +(\S+) *$/i;

/** Role of a member that is an administrator, as its row has it. */
const ADMINISTRATOR = 1;

export interface GateOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly now: () => number;
  /** Told of bookkeeping that failed; the call goes on. */
  readonly onNoteFailure: (error: unknown) => void;
}

/** What the gate says of a request: who sends it, or why nobody known does. */
export type Admission =
  | { readonly kind: "known"; readonly caller: Caller }
  | { readonly kind: "unknown" }
  /** The token is good and the account behind it is cut off. */
  | { readonly kind: "blocked" };

export type Gate = (authorization: string | undefined) => Promise<Admission>;

const UNKNOWN: Admission = { kind: "unknown" };

/**
 * Finds the caller of a request before anything of its body is read. It looks
 * each time: what the last commit revoked or blocked opens nothing.
 */
export function createGate({ store, keys, now, onNoteFailure }: GateOptions): Gate {
  return async (authorization) => {
    const value = BEARER.exec(authorization ?? "")?.[1];
    const token = value === undefined ? undefined : keys.readToken(value);
    if (!token || token.kind === "exchange") return UNKNOWN;
    const found = await findUnderAnyKey(store, token.hashes);
    const at = now();
    if (!found || found.kind !== token.kind) return UNKNOWN;
    const admission = admissionOf(found, at);
    if (admission.kind === "known" && at - (found.last_used_at ?? 0) >= LAST_USED_EVERY_MS) {
      store.note("token", found.id, { last_used_at: at }).catch(onNoteFailure);
    }
    return admission;
  };
}

/** Judges a caller that was let in anew: why it may not go on with the operation; undefined while it may. */
export function createStanding({ store, now }: Pick<GateOptions, "store" | "now">) {
  return async ({ tokenId, role }: Caller, operation: string): Promise<ConnectError | undefined> => {
    const found = await findTokenById(store.reader, tokenId);
    const admission = found ? admissionOf(found, now()) : UNKNOWN;
    if (admission.kind !== "known") return rejection(admission);
    const needed = permissionOf(operation);
    if (!needed || needed.grants[admission.caller.role] === needed.grants[role]) return undefined;
    const { permission } = needed;
    return answer(ErrorReason.PERMISSION_DENIED, `the permission ${permission} has changed`, { permission });
  };
}

function admissionOf(found: FoundToken, at: number): Admission {
  if (!holds(found, at)) return UNKNOWN;
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

/** Tokens made before a rotation are stored under the secret of their time. */
async function findUnderAnyKey(store: Store, hashes: readonly Uint8Array[]): Promise<FoundToken | undefined> {
  for (const hash of hashes) {
    const found = await findTokenByHash(store.reader, hash);
    if (found) return found;
  }
  return undefined;
}

function holds(token: FoundToken, at: number): boolean {
  if (token.disabled_at !== null || token.expires_at <= at) return false;
  return token.kind !== "service_account" || ((token.valid_until ?? 0) > at && token.suspended !== 1);
}

/** Undefined for a user who is a member no longer. */
function actingAs({ kind, role, left_at }: FoundToken): { role: Role; principal: Principal } | undefined {
  if (kind === "service_account") return { role: kind, principal: Principal.SERVICE_ACCOUNT };
  if (kind === "runner") return { role: kind, principal: Principal.RUNNER };
  if (kind === "environment") return { role: kind, principal: Principal.ENVIRONMENT };
  if (role === null || left_at !== null) return undefined;
  return { role: role === ADMINISTRATOR ? "administrator" : "member", principal: Principal.USER };
}

/** The error for who may not enter; undefined for who may. */
export function rejection(admission: Admission): ConnectError | undefined {
  if (admission.kind === "known") return undefined;
  return admission.kind === "blocked" ? fromDomain(accountBlocked()) : challenge();
}

function challenge(): ConnectError {
  const error = fromDomain(unauthenticated());
  error.metadata.set("WWW-Authenticate", 'Bearer realm="chartroom"');
  return error;
}
