import type { HandlerContext } from "@connectrpc/connect";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type {
  CreateOrganizationInviteRequest,
  GetOrganizationInviteSummaryRequest,
  JoinOrganizationRequest,
} from "#gen/service/v1/organization_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { memberMessage } from "../../domain/identity/member.ts";
import {
  inviteMessage,
  newInviteFacts,
  requireJoinId,
  requireJoinsByDomain,
  requireUsableInvite,
} from "../../domain/identity/organization-invite.ts";
import { validForMs } from "../../domain/identity/personal-token.ts";
import { joinsByDomain, requireJoiningAllowed } from "../../domain/identity/sign-in/joining.ts";
import type { Keys } from "../../keys.ts";
import { countMembers, findMemberOfAccount, type StoredMember } from "../../store/identity/member.ts";
import { findMemberFacts } from "../../store/identity/member-list.ts";
import { findOrganization } from "../../store/identity/organization.ts";
import {
  countInviteUse,
  findInvite,
  findInviteByHash,
  recordInviteRead,
  replaceInvite,
  type StoredInvite,
} from "../../store/identity/organization-invite.ts";
import { findIdentities } from "../../store/identity/provider-identity.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { joinOrganization } from "./membership.ts";
import { recordedAsMember } from "./recorded-member.ts";

type Dependencies = Pick<ServiceDependencies, "store" | "keys" | "now">;

/** Creates the invite of an organization and invalidates the previous one. */
export async function createInvite(
  tx: WriteTransaction,
  scope: Scope,
  keys: Keys,
  { validFor, maxUses, role }: CreateOrganizationInviteRequest,
) {
  const facts = newInviteFacts({ validForMs: validForMs(validFor), maxUses, role }, tx.now);
  const { value, hash } = keys.mintInvite();
  const id = tx.newId();
  const { keyId, sealed } = keys.seal(value, placeOf(id));
  const { organizationId: organization_id } = scope;
  await replaceInvite(tx, scope, { id, organization_id, hash, key_id: keyId, sealed, ...facts });
  return { invite: inviteMessage(value, facts) };
}

/** Returns the currently valid invite, with its id. @throws DomainError NOT_FOUND */
export async function getInvite(tx: WriteTransaction, scope: Scope, keys: Keys) {
  const invite = requireUsableInvite(await findInvite(tx.db, scope), tx.now);
  recordInviteRead(tx, scope);
  return { invite: inviteMessage(keys.open(invite.key_id, invite.sealed, placeOf(invite.id)), invite) };
}

/** Returns the organization of an invite. @throws DomainError NOT_FOUND for an invite that is not valid */
export async function getInviteSummary(
  deps: Dependencies,
  { inviteId }: GetOrganizationInviteSummaryRequest,
) {
  const named = await findInviteSummary(deps, inviteId);
  return { ...named, organizationMemberCount: await countMembers(deps.store.reader, named) };
}

/** Returns the organization of an invite, to anybody who has its id. @throws DomainError as getInviteSummary */
export async function findInviteSummary({ store, keys, now }: Dependencies, inviteId: string) {
  const db = store.reader;
  const { organization_id: organizationId } = await findUsable(db, keys, inviteId, now());
  const organization = await findOrganization(db, { organizationId });
  return { organizationId, organizationName: organization?.name ?? "" };
}

/**
 * Makes the caller's account a member of the organization of an invite, or of one whose invite domains include the
 * domain of an address of the account that a sign-in provider has verified.
 *
 * @throws DomainError NOT_FOUND for an invalid invite, and for an organization that the account cannot join this way;
 * PERMISSION_DENIED if only SCIM adds members
 */
export function joinOrganizationAs(
  { store, keys }: Dependencies,
  { joinId }: JoinOrganizationRequest,
  ctx: HandlerContext,
) {
  const { inviteId, organizationId } = requireJoinId(joinId);
  const hash = keys.hashOf(inviteId ?? "");
  return writeAsCaller(
    store,
    ctx,
    async (tx, caller) => {
      const { accountId } = caller;
      const invite =
        organizationId === undefined
          ? requireUsableInvite(await findInviteByHash(tx.db, hash), tx.now)
          : undefined;
      const scope = { organizationId: invite?.organization_id ?? organizationId ?? "" };
      const before = await findMemberOfAccount(tx.db, scope, accountId);
      if (!invite) await requireDomain(tx.db, scope, accountId, before);
      if (before?.left_at !== null) requireJoiningAllowed((await findPolicies(tx.db, scope)).effective);
      const role = invite?.role ?? OrganizationRole.MEMBER;
      const userId = before?.id ?? tx.newId();
      const recorded = recordedAsMember(tx, caller, () => userId);
      const joined = await joinOrganization(recorded, scope, accountId, role, userId);
      if (joined && invite) await countInviteUse(recorded, scope, invite);
      const member = joined ?? before;
      const facts = member && (await findMemberFacts(tx.db, scope, member.id));
      if (!facts) throw notFound("user");
      return { member: memberMessage(facts) };
    },
    {
      // Also locks the account, so that it is not blocked in the meantime.
      alsoLocks: async (db) => {
        if (organizationId !== undefined) return [null, organizationId];
        const invite = await findInviteByHash(db, hash);
        return invite ? [null, invite.organization_id] : [null];
      },
    },
  );
}

/**
 * Requires that an account may join by the domain of its address. One that left or was removed needs an invite:
 * otherwise a removed person could return immediately.
 */
async function requireDomain(
  db: Reader,
  scope: Scope,
  accountId: string,
  before: StoredMember | undefined,
): Promise<void> {
  const organization = await findOrganization(db, scope);
  const domains = JSON.parse(organization?.invite_domains ?? "[]");
  const joins = joinsByDomain(domains, await findIdentities(db, accountId));
  requireJoinsByDomain(organization, joins && (before === undefined || before.left_at === null));
}

async function findUsable(db: Reader, keys: Keys, inviteId: string, now: number): Promise<StoredInvite> {
  return requireUsableInvite(await findInviteByHash(db, keys.hashOf(inviteId)), now);
}

function placeOf(id: string) {
  return { table: "organization_invite", row: id, column: "sealed" };
}
