import type { HandlerContext } from "@connectrpc/connect";
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
  requireInviteId,
  requireUsableInvite,
} from "../../domain/identity/organization-invite.ts";
import { validForMs } from "../../domain/identity/personal-token.ts";
import type { Keys } from "../../keys.ts";
import { countMembers, findMemberOfAccount } from "../../store/identity/member.ts";
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
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { joinOrganization } from "./membership.ts";

type Dependencies = Pick<ServiceDependencies, "store" | "keys" | "now">;

/** Creates the invite of an organization; the one before is of no use from then on. */
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

/** Returns the invite that accounts can join with now, with its id. @throws DomainError NOT_FOUND */
export async function getInvite(tx: WriteTransaction, scope: Scope, keys: Keys) {
  const invite = requireUsableInvite(await findInvite(tx.db, scope), tx.now);
  recordInviteRead(tx, scope);
  return { invite: inviteMessage(keys.open(invite.key_id, invite.sealed, placeOf(invite.id)), invite) };
}

/** Returns what an invite is for. @throws DomainError NOT_FOUND for one that nobody can join with */
export async function getInviteSummary(
  { store, keys, now }: Dependencies,
  { inviteId }: GetOrganizationInviteSummaryRequest,
) {
  const db = store.reader;
  const { organization_id: organizationId } = await findUsable(db, keys, inviteId, now());
  const organization = await findOrganization(db, { organizationId });
  return {
    organizationId,
    organizationName: organization?.name ?? "",
    organizationMemberCount: await countMembers(db, { organizationId }),
  };
}

/**
 * Makes the caller's account a member of the organization of an invite.
 *
 * @throws DomainError NOT_FOUND for an invite that nobody can join with, and for an organization that is named
 *   itself: no account has an address that a provider verified
 */
export async function joinByInvite(
  { store, keys }: Dependencies,
  { joinId }: JoinOrganizationRequest,
  ctx: HandlerContext,
) {
  const hash = keys.hashOf(requireInviteId(joinId));
  return writeAsCaller(
    store,
    ctx,
    async (tx, { accountId }) => {
      const invite = requireUsableInvite(await findInviteByHash(tx.db, hash), tx.now);
      const scope = { organizationId: invite.organization_id };
      const joined = await joinOrganization(tx, scope, accountId, invite.role);
      if (joined) await countInviteUse(tx, scope, invite);
      const member = joined ?? (await findMemberOfAccount(tx.db, scope, accountId));
      const facts = member && (await findMemberFacts(tx.db, scope, member.id));
      if (!facts) throw notFound("user");
      return { member: memberMessage(facts) };
    },
    {
      // The account, so that it is not blocked meanwhile.
      alsoLocks: async (db) => {
        const invite = await findInviteByHash(db, hash);
        return invite ? [null, invite.organization_id] : [null];
      },
    },
  );
}

async function findUsable(db: Reader, keys: Keys, inviteId: string, now: number): Promise<StoredInvite> {
  return requireUsableInvite(await findInviteByHash(db, keys.hashOf(inviteId)), now);
}

function placeOf(id: string) {
  return { table: "organization_invite", row: id, column: "sealed" };
}
