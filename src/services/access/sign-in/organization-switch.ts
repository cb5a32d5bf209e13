import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { MAX_SESSIONS } from "../../../domain/identity/session.ts";
import type { SignInRules } from "../../../domain/identity/sign-in/provider.ts";
import {
  providersInto,
  requireMaySwitch,
  requireNoProvider,
  requireSignedIn,
  requireSwitchable,
} from "../../../domain/identity/sign-in/switching.ts";
import { findAccount, findMemberships } from "../../../store/identity/account.ts";
import { findMemberOfAccount } from "../../../store/identity/member.ts";
import { findIdentities } from "../../../store/identity/provider-identity.ts";
import { findOwnSession, removeOldestSessions, removeSignIn } from "../../../store/identity/session.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import { revalidate } from "../../call/authenticated-caller.ts";
import { insertSession, type SignInDependencies } from "../../identity/sign-in.ts";
import { findInviteSummary } from "../organization-invite.ts";

/** The form of an organization's id; some databases raise an error for other texts. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A sign-in provider of the settings: its rules and its identity. */
export interface SigningProvider {
  readonly issuer: string;
  readonly rules: SignInRules;
}

/** An organization that a session can be exchanged for. */
export interface OwnOrganization {
  readonly id: string;
  readonly name: string;
  readonly isCurrent: boolean;
  /**
   * Ids of the providers that sign the person in to it. If there are some, the person must use one of them instead of
   * a switch.
   */
  readonly providerIds: readonly string[];
}

/** Moves a signed-in person from one organization to another that the account is a member of. */
export interface OrganizationSwitch {
  /**
   * Lists the organizations in which the person of a session is an active member, by name. A session that began with
   * an access token gets only its own.
   *
   * @throws DomainError UNAUTHENTICATED without a session
   */
  list(
    present: Caller | undefined,
    providers: readonly SigningProvider[],
  ): Promise<readonly OwnOrganization[]>;
  /**
   * Begins a session in another organization and ends the current one. The new session keeps the provider, the
   * provider's session and the end time of the old one.
   *
   * @returns the value of the session's cookie, which is not stored, and its end
   * @throws DomainError UNAUTHENTICATED; ACCOUNT_BLOCKED; PERMISSION_DENIED for a session that began with an access
   * token; NOT_FOUND for an organization in which the person is not an active member; PHASE_UNSUITABLE for one that a
   * provider signs the person in to
   */
  begin(
    present: Caller | undefined,
    organizationId: string,
    providers: readonly SigningProvider[],
  ): Promise<{ readonly value: string; readonly endsAt: number }>;
  /** Returns the organization of an invite, to anybody who has its id. @throws DomainError NOT_FOUND */
  findInvite(
    inviteId: string,
  ): Promise<{ readonly organizationId: string; readonly organizationName: string }>;
}

export function createOrganizationSwitch({ store, keys, now }: SignInDependencies): OrganizationSwitch {
  return {
    findInvite: (inviteId) => findInviteSummary({ store, keys, now }, inviteId),
    async list(signedIn, providers) {
      const present = requireSignedIn(signedIn);
      const db = store.reader;
      const session = await sessionOf(db, present);
      const isTokens = session === undefined || session.parent_id !== null;
      const issuers = await issuersOf(db, present.accountId);
      return (await findMemberships(db, present.accountId))
        .map(({ organizationId: id, organizationName: name, suspendedAt }) => ({
          ...{ id, name, isCurrent: id === present.organizationId, isActive: suspendedAt === null },
          providerIds: providersInto(id, issuers, providers),
        }))
        .filter(({ isCurrent, isActive }) => isCurrent || (isActive && !isTokens))
        .map(({ isActive: _, ...organization }) => organization)
        .toSorted((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id));
    },
    async begin(signedIn, organizationId, providers) {
      const present = requireSignedIn(signedIn);
      const scope = { organizationId };
      const { accountId } = present;
      if (!ID.test(organizationId)) throw notFound("organization");
      // Only for the author in the record; the transaction looks up the member again.
      const named = await findMemberOfAccount(store.reader, scope, accountId);
      if (!named) throw notFound("organization");
      const begin = async (tx: WriteTransaction) => {
        await revalidate(tx.db, present, tx.now);
        const session = requireSwitchable(await sessionOf(tx.db, present));
        const member = requireMaySwitch(
          await findAccount(tx.db, accountId),
          await findMemberOfAccount(tx.db, scope, accountId),
        );
        requireNoProvider(providersInto(organizationId, await issuersOf(tx.db, accountId), providers));
        await removeSignIn(tx, present, present.tokenId, present.subject);
        await removeOldestSessions(tx, scope, member.id, MAX_SESSIONS - 1);
        const subject = create(SubjectSchema, { id: member.id, principal: Principal.USER });
        return insertSession(tx, { organizationId, subject, readOnly: false }, keys, {
          ...(session.identity_id !== null && { identityId: session.identity_id }),
          providerSessionId: session.provider_session_id ?? undefined,
          endsAt: session.expires_at,
        });
      };
      // Locked, so that the account is not blocked in the meantime.
      const locks = [null, organizationId, present.organizationId];
      return store.write({ id: named.id, principal: Principal.USER }, "sign-in/organization", begin, {
        locks,
      });
    },
  };
}

function sessionOf(db: Reader, present: Caller) {
  return findOwnSession(db, present, present.subject.id, present.tokenId);
}

async function issuersOf(db: Reader, accountId: string): Promise<ReadonlySet<string>> {
  return new Set((await findIdentities(db, accountId)).map(({ issuer }) => issuer));
}
