import { Principal } from "#gen/service/v1/identity_pb.js";
import { SessionSchema } from "#gen/service/v1/user_pb.js";
import { accountBlocked } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  MAX_SESSIONS,
  newSession,
  requireReplacementAgreed,
  SIGN_IN_LINK_VALID_MS,
  signInRefused,
} from "../../domain/identity/session.ts";
import type { Keys } from "../../keys.ts";
import { findMemberFacts } from "../../store/identity/member-list.ts";
import { findOrganization } from "../../store/identity/organization.ts";
import { removeOldestSessions, removeSignIn } from "../../store/identity/session.ts";
import { type FoundToken, findTokenByHash, insertToken } from "../../store/identity/token.ts";
import { toBody } from "../../store/json.ts";
import type { Reader, Scope, Store, WriteTransaction } from "../../store/store.ts";
import { authenticatedCallerOf } from "../call/authenticated-caller.ts";

export interface SignInDependencies {
  readonly store: Store;
  readonly keys: Keys;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
}

/** The facts that the sign-in page shows before anybody is signed in. */
export interface SignInPerson {
  readonly name: string;
  readonly email: string;
  readonly organization: string;
  readonly readOnly: boolean;
}

/** Signs people in with the secret of a link, or with a personal access token. */
export interface SignIn {
  /**
   * Returns the person that a secret belongs to. @throws DomainError UNAUTHENTICATED for every invalid secret, or
   * ACCOUNT_BLOCKED
   */
  findPerson(secret: string): Promise<SignInPerson>;
  findPersonOf(caller: Caller): Promise<SignInPerson>;
  /**
   * Begins a session, ends the earlier one in the same browser, and invalidates a link.
   *
   * @param present the caller of the browser's current session
   * @param isAgreed true if the user agreed to replace another person's session
   * @returns the value of the session's cookie, which is not stored, and its end
   * @throws DomainError as findPerson; PHASE_UNSUITABLE when another person is signed in
   */
  begin(
    secret: string,
    present: Caller | undefined,
    isAgreed: boolean,
  ): Promise<{ readonly value: string; readonly endsAt: number }>;
}

export function createSignIn({ store, keys, now }: SignInDependencies): SignIn {
  const find = (db: Reader, secret: string, at: number) => findSigner(db, keys, secret, at);
  return {
    async findPerson(secret) {
      const { caller } = await find(store.reader, secret, now());
      return personOf(store.reader, caller);
    },
    findPersonOf: (caller) => personOf(store.reader, caller),
    async begin(secret, present, isAgreed) {
      // Only for the author in the record; the secret is looked up again in the transaction.
      const { subject } = (await find(store.reader, secret, now())).caller;
      const begin = async (tx: WriteTransaction) => {
        const { token, caller } = await find(tx.db, secret, tx.now);
        requireReplacementAgreed(isAnother(present, caller), isAgreed);
        if (token.kind === "link") await removeSignIn(tx, caller, token.id);
        if (present) await removeSignIn(tx, present, present.tokenId, present.subject);
        await removeOldestSessions(tx, caller, caller.subject.id, MAX_SESSIONS - 1);
        return insertSession(tx, caller, keys, token.kind === "personal" ? { token } : {});
      };
      return store.write({ id: subject.id, principal: Principal.USER }, "sign-in", begin, {
        locks: async (db) => {
          const { caller } = await find(db, secret, now());
          return [caller.organizationId, ...(present ? [present.organizationId] : [])];
        },
      });
    },
  };
}

/**
 * Creates a link with which a member signs in once, within 15 minutes.
 *
 * @returns the secret of the link, which is not stored
 */
export async function createSignInLink(
  tx: WriteTransaction,
  scope: Scope,
  keys: Keys,
  userId: string,
): Promise<string> {
  const { value, hash } = keys.mintToken("link");
  await insertToken(tx, scope, {
    ...newRow(tx, scope, userId, hash),
    kind: "link",
    read_only: 0,
    expires_at: tx.now + SIGN_IN_LINK_VALID_MS,
    parent_id: null,
    body: "{}",
  });
  return value;
}

/** How a session began: with a personal access token, at a sign-in provider, with a link, or with another session. */
export interface SessionBeginning {
  readonly token?: FoundToken;
  readonly identityId?: string;
  readonly providerSessionId?: string | undefined;
  /** The end of the session that this one replaces, in milliseconds since 1970 UTC. */
  readonly endsAt?: number;
}

/** Inserts a session of a member. @returns the value of its cookie, which is not stored, and its end */
export async function insertSession(
  tx: WriteTransaction,
  caller: Pick<Caller, "organizationId" | "subject" | "readOnly">,
  keys: Keys,
  { token, identityId, providerSessionId, endsAt }: SessionBeginning,
) {
  const { value, hash } = keys.mintToken("session");
  const row = newRow(tx, caller, caller.subject.id, hash);
  const { session, expiresAtMs } = newSession(
    {
      userId: caller.subject.id,
      readOnly: caller.readOnly,
      endsAt: endsAt ?? token?.expires_at,
    },
    row.id,
    tx.now,
  );
  await insertToken(tx, caller, {
    ...row,
    kind: "session",
    read_only: session.readOnly ? 1 : 0,
    expires_at: expiresAtMs,
    parent_id: token?.id ?? null,
    identity_id: identityId ?? null,
    provider_session_id: providerSessionId ?? null,
    body: toBody(SessionSchema, session),
  });
  return { value, endsAt: expiresAtMs };
}

function newRow(tx: WriteTransaction, { organizationId }: Scope, userId: string, hash: Uint8Array) {
  return {
    id: tx.newId(),
    organization_id: organizationId,
    subject_id: userId,
    hash,
    hmac_key_id: null,
    // The idle time of an unused session starts with the session.
    last_used_at: tx.now,
    creator_account_id: null,
    disabled_at: null,
  };
}

async function findSigner(
  db: Reader,
  keys: Keys,
  secret: string,
  at: number,
): Promise<{ token: FoundToken; caller: Caller }> {
  const read = keys.readToken(secret);
  const token = await findTokenByHash(db, read?.hash ?? keys.hashOf(secret));
  if (!token || token.kind !== read?.kind) throw signInRefused();
  if (token.kind !== "link" && token.kind !== "personal") throw signInRefused();
  const authenticated = authenticatedCallerOf(token, at);
  if (authenticated.kind === "blocked") throw accountBlocked();
  if (authenticated.kind !== "known") throw signInRefused();
  return { token, caller: authenticated.caller };
}

/** Returns the facts about a caller that the page shows. @throws DomainError UNAUTHENTICATED */
export async function personOf(db: Reader, caller: Caller): Promise<SignInPerson> {
  const facts = await findMemberFacts(db, caller, caller.subject.id);
  const organization = await findOrganization(db, caller);
  if (!facts || !organization) throw signInRefused();
  const { name, email } = facts;
  return { name, email, organization: organization.name, readOnly: caller.readOnly };
}

/** Returns whether another person is signed in; the same account in another organization is the same person. */
function isAnother(present: Caller | undefined, caller: Caller): boolean {
  return present !== undefined && present.accountId !== caller.accountId;
}
