import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../domain/caller.ts";
import type { Keys } from "../keys.ts";
import type { Store } from "../store/store.ts";
import { findPersonalToken } from "../store/token.ts";
import { answer } from "./error.ts";

/** The last use of a token is written at most this often. */
const LAST_USED_EVERY_MS = 60_000;

/** `Bearer` and one token, as RFC 6750 writes it; the scheme's case does not matter. */
const BEARER = /^bearer +(\S+) *$/i;

export interface GateOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly now: () => number;
  /** Told of bookkeeping that failed; the call goes on. */
  readonly onNoteFailure: (error: unknown) => void;
}

/** Who sends a request with this Authorization header; undefined for nobody known. */
export type Gate = (authorization: string | undefined) => Promise<Caller | undefined>;

/**
 * Finds the caller of a request before anything of its body is read. It looks
 * each time: a token that was revoked by the last commit opens nothing.
 */
export function createGate({ store, keys, now, onNoteFailure }: GateOptions): Gate {
  return async (authorization) => {
    const value = BEARER.exec(authorization ?? "")?.[1];
    const token = value === undefined ? undefined : keys.readToken(value);
    if (token?.kind !== "personal") return undefined;
    const found = await findPersonalToken(store.reader, token.hash);
    const at = now();
    if (!found || found.expires_at <= at) return undefined;
    if (at - (found.last_used_at ?? 0) >= LAST_USED_EVERY_MS) {
      store.note("token", found.id, { last_used_at: at }).catch(onNoteFailure);
    }
    return {
      organizationId: found.organization_id,
      subject: create(SubjectSchema, { id: found.subject_id, principal: Principal.USER }),
      accountId: found.account_id,
      tokenId: found.id,
      readOnly: found.read_only === 1,
    };
  };
}

/** One answer for every cause, so that it tells nothing about tokens. */
export function unauthenticated() {
  const error = answer(
    ErrorReason.UNAUTHENTICATED,
    "a valid access token is required: send it as `Authorization: Bearer cr_pat_...`",
  );
  error.metadata.set("WWW-Authenticate", 'Bearer realm="chartroom"');
  return error;
}
