import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  OrganizationService as Contract,
  CreateOrganizationInviteRequest,
  CreateOrganizationRequest,
  GetOrganizationInviteRequest,
  GetOrganizationInviteSummaryRequest,
  GetOrganizationPoliciesRequest,
  GetOrganizationRequest,
  GetServerHealthRequest,
  JoinOrganizationRequest,
  LeaveOrganizationRequest,
  ListMembersRequest,
  PreviewOrganizationPoliciesRequest,
  PreviewRetentionRequest,
  RemoveMemberRequest,
  SetRoleRequest,
  UpdateOrganizationPoliciesRequest,
  UpdateOrganizationRequest,
} from "#gen/service/v1/organization_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { memberMessage, requireOwnMembership } from "../../domain/identity/member.ts";
import {
  organizationMessage,
  requireCreationAllowed,
  storedDomains,
} from "../../domain/identity/organization.ts";
import { findAccount } from "../../store/identity/account.ts";
import { memberFacts } from "../../store/identity/member-list.ts";
import { findOrganization, updateOrganization } from "../../store/identity/organization.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listMembers } from "../identity/member-list.ts";
import { setPolicies } from "../policy/organization-policies.ts";
import { removeMembership, setMemberRole } from "./membership.ts";
import { insertOrganizationWithAdministrator } from "./organization-creation.ts";
import { createInvite, getInvite, getInviteSummary, joinOrganizationAs } from "./organization-invite.ts";
import { previewPolicies } from "./policy-preview.ts";
import { recordedAsMember } from "./recorded-member.ts";
import { previewRetention } from "./retention/retention-preview.ts";

/** Serves organizations, their members and their policies. */
export class OrganizationService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createOrganization({ name }: CreateOrganizationRequest, ctx: HandlerContext) {
    const { store, allowOrganizationCreation } = this.#deps;
    const create = async (tx: WriteTransaction, caller: Caller) => {
      const { accountId } = caller;
      requireCreationAllowed(allowOrganizationCreation);
      const account = await findAccount(tx.db, accountId);
      if (!account) throw notFound("account");
      const userId = tx.newId();
      const { organization, member } = await insertOrganizationWithAdministrator(
        recordedAsMember(tx, caller, () => userId),
        name,
        accountId,
        userId,
      );
      return {
        organization: organizationMessage(organization),
        member: memberMessage(memberFacts(member, account)),
      };
    };
    return writeAsCaller(store, ctx, create, { alsoLocks: [null] });
  }

  listMembers = (req: ListMembersRequest, ctx: HandlerContext) => {
    requireOwnOrganization(callerOf(ctx), req.organizationId);
    return listMembers(this.#deps, callerOf(ctx), req);
  };

  setRole({ organizationId, userId, role }: SetRoleRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, organizationId);
      await setMemberRole(tx, caller, userId, role);
      return {};
    });
  }

  async removeMember({ organizationId, userId }: RemoveMemberRequest, ctx: HandlerContext) {
    const removed = await writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, organizationId);
      await removeMembership(tx, caller, userId);
      return {};
    });
    await this.#deps.revocationMonitor.check();
    return removed;
  }

  async leaveOrganization({ userId }: LeaveOrganizationRequest, ctx: HandlerContext) {
    const left = await writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnMembership(userId, caller.subject.id);
      await removeMembership(tx, caller, userId);
      return {};
    });
    await this.#deps.revocationMonitor.check();
    return left;
  }

  updateOrganization(req: UpdateOrganizationRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, req.organizationId);
      const before = await findOrganization(tx.db, caller);
      if (!before) throw notFound("organization");
      const { name = before.name, inviteDomains } = req;
      const invite_domains = inviteDomains ? storedDomains(inviteDomains.domains) : before.invite_domains;
      const isSame = name === before.name && invite_domains === before.invite_domains;
      const after = isSame ? before : await updateOrganization(tx, caller, before, { name, invite_domains });
      return { organization: organizationMessage(after) };
    });
  }

  createOrganizationInvite(req: CreateOrganizationInviteRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, req.organizationId);
      return createInvite(tx, caller, this.#deps.keys, req);
    });
  }

  getOrganizationInvite({ organizationId }: GetOrganizationInviteRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, organizationId);
      return getInvite(tx, caller, this.#deps.keys);
    });
  }

  getOrganizationInviteSummary(req: GetOrganizationInviteSummaryRequest) {
    return getInviteSummary(this.#deps, req);
  }

  joinOrganization(req: JoinOrganizationRequest, ctx: HandlerContext) {
    return joinOrganizationAs(this.#deps, req, ctx);
  }

  async getOrganizationPolicies({ organizationId }: GetOrganizationPoliciesRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    requireOwnOrganization(caller, organizationId);
    return { policies: (await findPolicies(this.#deps.store.reader, caller)).effective };
  }

  async previewOrganizationPolicies({ change }: PreviewOrganizationPoliciesRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    if (!change) throw new Error("a request without a change passed its constraints");
    requireOwnOrganization(caller, change.organizationId);
    return previewPolicies(this.#deps, caller, change);
  }

  previewRetention({ organizationId }: PreviewRetentionRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    requireOwnOrganization(caller, organizationId);
    return previewRetention(this.#deps, caller);
  }

  async getServerHealth({ organizationId }: GetServerHealthRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    requireOwnOrganization(caller, organizationId);
    const { version, startedAt, checks, server, organization } = await this.#deps.serverHealth(caller);
    return {
      version,
      startedAt: timestampFromMs(startedAt),
      ready: checks.every(({ reason }) => reason === ""),
      checks: checks.map(({ name, reason }) => ({ name, well: reason === "", reason })),
      server: [...server],
      organization: [...organization],
    };
  }

  updateOrganizationPolicies(req: UpdateOrganizationPoliciesRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      requireOwnOrganization(caller, req.organizationId);
      await setPolicies(tx, caller, req);
      return {};
    });
  }

  async getOrganization({ organizationId }: GetOrganizationRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    requireOwnOrganization(caller, organizationId);
    const organization = await findOrganization(this.#deps.store.reader, caller);
    if (!organization) throw notFound("organization");
    return { organization: organizationMessage(organization) };
  }
}

/**
 * Requires that a request names the caller's own organization.
 *
 * @throws DomainError NOT_FOUND for any other id, whether it exists or not
 */
function requireOwnOrganization(caller: Caller, organizationId: string): void {
  if (organizationId !== caller.organizationId) throw notFound("organization");
}
