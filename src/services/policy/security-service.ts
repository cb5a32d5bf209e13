import { create, toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import type { SecurityPolicy } from "#gen/service/v1/security_pb.js";
import {
  type SecurityService as Contract,
  type CreateSecurityPolicyRequest,
  type DeleteSecurityPolicyRequest,
  type GetSecurityPolicyRequest,
  type ListSecurityPoliciesRequest,
  ListSecurityPoliciesRequest_FilterSchema,
  type UpdateSecurityPolicyRequest,
} from "#gen/service/v1/security_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireAnnotationsKnown } from "../../domain/identity/annotation/annotations.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  newSecurityPolicy,
  requireSecurityPolicyAssignable,
  requireSecurityPolicyUnused,
  type SecurityPolicyUse,
  updatedSecurityPolicy,
} from "../../domain/policy/security-policy.ts";
import { fold } from "../../domain/text/fold.ts";
import { ANNOTATIONS_LEVEL, mayStore } from "../../store/feature-level.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import {
  appliesInEnvironment,
  findSecurityPolicy,
  findSecurityPolicyPage,
  insertSecurityPolicy,
  removeSecurityPolicy,
  updateSecurityPolicy,
} from "../../store/policy/security-policy.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { leasePoliciesChanged } from "./organization-policies.ts";

/** Serves security policies, which restrict the programs in environments. */
export class SecurityService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createSecurityPolicy(req: CreateSecurityPolicyRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      if (req.organizationId !== caller.organizationId) throw notFound("organization");
      const { organizationId } = caller;
      requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
      const securityPolicy = newSecurityPolicy(req, { id: tx.newId(), organizationId, now: tx.now });
      await insertSecurityPolicy(tx, caller, securityPolicy);
      return { securityPolicy };
    });
  }

  async getSecurityPolicy({ securityPolicyId }: GetSecurityPolicyRequest, ctx: HandlerContext) {
    const securityPolicy = await findSecurityPolicy(this.#deps.store.reader, callerOf(ctx), securityPolicyId);
    if (!securityPolicy) throw notFound("security policy");
    return { securityPolicy };
  }

  async listSecurityPolicies({ filter, pagination }: ListSecurityPoliciesRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    if (filter?.organizationId && filter.organizationId !== caller.organizationId) {
      throw notFound("organization");
    }
    const asked = { ids: filter?.securityPolicyIds ?? [], search: fold(filter?.search ?? "") };
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListSecurityPolicies",
      parts: [filter && toJson(ListSecurityPoliciesRequest_FilterSchema, filter)],
      pagination,
      search: asked.search,
      find: (db, after, limit) => findSecurityPolicyPage(db, caller, asked, after, limit),
    });
    return { ...page, securityPolicies: rows };
  }

  updateSecurityPolicy(req: UpdateSecurityPolicyRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await requireSecurityPolicy(tx, caller, req.securityPolicyId);
      requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
      const securityPolicy = updatedSecurityPolicy(before, req, tx.now);
      if (!securityPolicy) return { securityPolicy: before };
      const { assigned, applied } = await findUse(tx, caller, before.id);
      if (assigned || applied) requireSecurityPolicyAssignable(securityPolicy);
      await updateSecurityPolicy(tx, caller, before, securityPolicy);
      if (assigned || applied) {
        const leased = (policy: SecurityPolicy) => create(PoliciesSchema, { securityPolicy: policy });
        await leasePoliciesChanged.call(tx, caller, leased(before), leased(securityPolicy));
      }
      return { securityPolicy };
    });
  }

  deleteSecurityPolicy({ securityPolicyId }: DeleteSecurityPolicyRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const securityPolicy = await requireSecurityPolicy(tx, caller, securityPolicyId);
      requireSecurityPolicyUnused(await findUse(tx, caller, securityPolicyId));
      await removeSecurityPolicy(tx, caller, securityPolicy);
      return {};
    });
  }
}

async function requireSecurityPolicy(
  tx: WriteTransaction,
  caller: Caller,
  id: string,
): Promise<SecurityPolicy> {
  const securityPolicy = await findSecurityPolicy(tx.db, caller, id);
  if (!securityPolicy) throw notFound("security policy");
  return securityPolicy;
}

async function findUse(tx: WriteTransaction, caller: Caller, id: string): Promise<SecurityPolicyUse> {
  const { effective } = await findPolicies(tx.db, caller);
  return {
    assigned: effective.securityPolicyId === id,
    applied: await appliesInEnvironment(tx.db, caller, id),
  };
}
