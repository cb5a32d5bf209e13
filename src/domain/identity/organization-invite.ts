import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type OrganizationInvite,
  OrganizationInviteSchema,
  OrganizationRole,
} from "#gen/service/v1/organization_pb.js";
import type { JoinOrganizationRequest } from "#gen/service/v1/organization_service_pb.js";
import { notFound, valueUnusable } from "../error.ts";

/** Default validity of an invite (contract, CreateOrganizationInviteRequest): 7 days. */
const INVITE_VALID_DEFAULT_MS = 7 * 24 * 3600 * 1000;

/** Default of how many accounts join with an invite (contract, same place). */
const INVITE_USES_DEFAULT = 25;

/** The terms of an invite. Times are milliseconds since 1970 UTC. */
export interface InviteFacts {
  /** OrganizationRole by number. */
  readonly role: number;
  readonly max_uses: number;
  readonly uses: number;
  readonly expires_at: number;
}

/** Returns what a new invite is good for; 0 and UNSPECIFIED mean the defaults. */
export function newInviteFacts(
  asked: { readonly validForMs: number; readonly maxUses: number; readonly role: OrganizationRole },
  now: number,
): InviteFacts {
  return {
    role: asked.role || OrganizationRole.MEMBER,
    max_uses: asked.maxUses || INVITE_USES_DEFAULT,
    uses: 0,
    expires_at: now + (asked.validForMs || INVITE_VALID_DEFAULT_MS),
  };
}

/**
 * Requires that an account can join with an invite at `now`.
 * @param invite undefined for one that is unknown
 * @throws DomainError NOT_FOUND, the same for every cause
 */
export function requireUsableInvite<I extends InviteFacts>(invite: I | undefined, now: number): I {
  if (!invite || invite.expires_at <= now || invite.uses >= invite.max_uses) throw notFound("invite");
  return invite;
}

/**
 * Requires that a request to join names an invite, or an organization.
 * @returns the id of one of them
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireJoinId({ case: named, value }: JoinOrganizationRequest["joinId"]) {
  if (named === "inviteId") return { inviteId: value };
  if (named === "organizationId") return { organizationId: value };
  throw valueUnusable("inviteId", "name the invite or the organization to join");
}

/** Requires that an account joins an organization by its address. @throws DomainError NOT_FOUND, whatever is missing */
export function requireJoinsByDomain<O>(organization: O | undefined, joins: boolean): O {
  if (!organization || !joins) throw notFound("organization");
  return organization;
}

/** Returns an invite as the contract shows it to administrators. */
export function inviteMessage(inviteId: string, facts: InviteFacts): OrganizationInvite {
  return create(OrganizationInviteSchema, {
    inviteId,
    role: facts.role,
    maxUses: facts.max_uses,
    uses: facts.uses,
    expiresAt: timestampFromMs(facts.expires_at),
  });
}
