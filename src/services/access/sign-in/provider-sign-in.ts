import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { mailboxOf } from "../../../domain/identity/account.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { isAddressOf } from "../../../domain/identity/scim/scim-user.ts";
import { MAX_SESSIONS, SESSION_VALID_MS } from "../../../domain/identity/session.ts";
import {
  groupNamesOf,
  type ProviderClaims,
  requireAllowedDomain,
  requireCreation,
  requireLinkable,
  roleOf,
  SignInRefused,
  type SignInRules,
} from "../../../domain/identity/sign-in/provider.ts";
import {
  type ProviderLogoutClaims,
  requireAgreedSignIn,
  requireMaySignIn,
  startsBefore,
} from "../../../domain/identity/sign-in/provider-session.ts";
import { fold } from "../../../domain/text/fold.ts";
import {
  findAccount,
  findAccountByEmail,
  findMemberships,
  insertAccount,
  type StoredAccount,
} from "../../../store/identity/account.ts";
import {
  countOtherAdministrators,
  findMember,
  findMemberOfAccount,
  type StoredMember,
  updateMember,
} from "../../../store/identity/member.ts";
import {
  findIdentities,
  findIdentity,
  insertIdentity,
  type StoredIdentity,
  updateIdentity,
} from "../../../store/identity/provider-identity.ts";
import { findScimUserPage } from "../../../store/identity/scim-user.ts";
import { findProviderSessions, removeOldestSessions, removeSignIn } from "../../../store/identity/session.ts";
import { removeToken } from "../../../store/identity/token.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { type Reader, type Scope, SYSTEM, type WriteTransaction } from "../../../store/store.ts";
import { insertSession, type SignInDependencies } from "../../identity/sign-in.ts";
import { setProviderMemberships } from "../group/provider-groups.ts";
import { joinOrganization } from "../membership.ts";

export {
  type ProviderClaims,
  type SignInProblem,
  SignInRefused,
  type SignInRules,
} from "../../../domain/identity/sign-in/provider.ts";
export type { ProviderLogoutClaims } from "../../../domain/identity/sign-in/provider-session.ts";

/** The sessions that a provider has ended: all of a person's sessions, or those of one session at the provider. */
export interface ProviderLogout extends ProviderLogoutClaims {
  readonly issuer: string;
}

/** Signs in people whom a provider authenticates, and ends their sessions at the provider's request. */
export interface ProviderSignIn {
  /**
   * Begins a session, and ends the earlier one in the same browser. Finds the account of the identity, links it or
   * creates it, according to the rules.
   *
   * @param present the caller of the browser's current session
   * @param isAgreed true if the user agreed to replace another person's session
   * @returns the value of the session's cookie, which is not stored, and its end
   * @throws SignInRefused
   */
  begin(
    rules: SignInRules,
    claims: ProviderClaims,
    present: Caller | undefined,
    isAgreed: boolean,
  ): Promise<{ readonly value: string; readonly endsAt: number }>;
  /** Ends the sessions that began before the provider's request. */
  end(logout: ProviderLogout): Promise<void>;
}

export function createProviderSignIn({ store, keys }: SignInDependencies): ProviderSignIn {
  return {
    async begin(rules, claims, present, isAgreed) {
      const { organizationId } = rules;
      const begin = async (tx: WriteTransaction) => {
        requireAllowedDomain(rules, claims);
        const identity = await findOrCreateIdentity(tx, rules, claims);
        const account = await findAccount(tx.db, identity.account_id);
        const member = await enter(tx, rules, claims, identity.account_id);
        requireMaySignIn(account, member);
        requireAgreedSignIn(present !== undefined && present.accountId !== identity.account_id, isAgreed);
        const subject = create(SubjectSchema, { id: member.id, principal: Principal.USER });
        const groupNames = groupNamesOf(rules, claims);
        if (groupNames)
          await setProviderMemberships(tx, { organizationId }, member.id, `oidc:${rules.id}`, groupNames);
        if (present) await removeSignIn(tx, present, present.tokenId, present.subject);
        await removeOldestSessions(tx, { organizationId }, member.id, MAX_SESSIONS - 1);
        return insertSession(tx, { organizationId, subject, readOnly: false }, keys, {
          identityId: identity.id,
          providerSessionId: claims.sessionId,
        });
      };
      // Locked, so that the account, which may be new, is not blocked in the meantime.
      const locks = [null, organizationId, ...(present ? [present.organizationId] : [])];
      return store.write(await actorOf(store.reader, rules, claims), "sign-in", begin, { locks });
    },
    async end(logout) {
      const end = async (tx: WriteTransaction) => {
        for (const session of await sessionsOf(tx.db, logout)) {
          await removeToken(tx, { organizationId: session.organization_id }, session);
        }
      };
      const locks = async (db: Reader) =>
        (await sessionsOf(db, logout)).map(({ organization_id }) => organization_id);
      await store.write(SYSTEM, "sign-in/logout", end, { locks });
    },
  };
}

/** Returns the actor to record for a sign-in: the member, or the system for a new person. */
async function actorOf(db: Reader, { organizationId }: SignInRules, { issuer, subject }: ProviderClaims) {
  const identity = await findIdentity(db, issuer, subject);
  const member = identity && (await findMemberOfAccount(db, { organizationId }, identity.account_id));
  return member ? { id: member.id, principal: Principal.USER } : SYSTEM;
}

async function findOrCreateIdentity(
  tx: WriteTransaction,
  rules: SignInRules,
  claims: ProviderClaims,
): Promise<StoredIdentity> {
  const { issuer, subject, email, name } = claims;
  const email_verified = claims.emailVerified ? 1 : 0;
  const known = await findIdentity(tx.db, issuer, subject);
  if (known) {
    await updateIdentity(tx, known, { email, email_verified });
    return known;
  }
  const insert = (account_id: string) =>
    insertIdentity(tx, { id: tx.newId(), account_id, issuer, subject, email, email_verified });
  const existing = claims.emailVerified ? await findAccountOf(tx.db, rules, email) : undefined;
  if (existing) {
    const memberships = await findMemberships(tx.db, existing.id);
    requireLinkable(rules, {
      isAdministrator: memberships.some(({ role }) => role === OrganizationRole.ADMIN),
      hasIdentity: (await findIdentities(tx.db, existing.id)).length > 0,
      scimOrganizationId: existing.scim_organization_id,
    });
    return insert(existing.id);
  }
  requireCreation(rules, claims, (await findPolicies(tx.db, rules)).effective);
  const id = tx.newId();
  await insertAccount(tx, { id, name, email: mailboxOf(email) });
  return insert(id);
}

/**
 * Returns the account with an address. The local part is compared with letter case, except for accounts that the
 * organization's SCIM client manages, whose user names ignore letter case (RFC 7643, 4.1.1).
 *
 * @throws SignInRefused if several accounts have the address, or one that has left
 */
async function findAccountOf(db: Reader, scope: Scope, email: string): Promise<StoredAccount | undefined> {
  const account = await findAccountByEmail(db, email);
  if (account) return account;
  const find = async (hasLeft: boolean) => {
    const { users } = await findScimUserPage(db, scope, { userName: fold(email), hasLeft }, 0, 10);
    return users.filter((user) => isAddressOf(user, email));
  };
  const same = await find(false);
  if (same.length > 1) throw new SignInRefused("address_taken");
  // A new account would let a member who left or was removed return.
  if (same.length === 0 && (await find(true)).length > 0) throw new SignInRefused("not_member");
  const member = same[0] && (await findMember(db, scope, same[0].id));
  return member && findAccount(db, member.account_id);
}

/**
 * Returns the account's existing or new membership in the provider's organization, with the role according to the
 * claims. People who left or were removed cannot return this way.
 */
async function enter(
  tx: WriteTransaction,
  rules: SignInRules,
  claims: ProviderClaims,
  accountId: string,
): Promise<StoredMember> {
  const role = roleOf(rules, claims);
  const existing = await findMemberOfAccount(tx.db, rules, accountId);
  if (!existing) {
    requireCreation(rules, claims, (await findPolicies(tx.db, rules)).effective);
    await joinOrganization(tx, rules, accountId, role ?? OrganizationRole.MEMBER);
    return (await findMemberOfAccount(tx.db, rules, accountId)) as StoredMember;
  }
  if (role === undefined || role === existing.role || existing.left_at !== null) return existing;
  if (await isLastAdministrator(tx, rules, existing)) return existing;
  const changed = { ...existing, role };
  await updateMember(tx, rules, existing, changed);
  return changed;
}

/** Returns whether a member is the last administrator, who keeps that role regardless of the claims. */
async function isLastAdministrator(tx: WriteTransaction, scope: Scope, member: StoredMember) {
  if (member.role !== OrganizationRole.ADMIN) return false;
  return (await countOtherAdministrators(tx.db, scope, member.id)) === 0;
}

async function sessionsOf(db: Reader, { issuer, subject, sessionId, at }: ProviderLogout) {
  const sessions = await findProviderSessions(db, issuer, subject, sessionId);
  return sessions.filter(({ expires_at }) => startsBefore(expires_at - SESSION_VALID_MS, at));
}
