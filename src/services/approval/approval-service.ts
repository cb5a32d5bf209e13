import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type ApprovalService as Contract,
  type DecideApprovalRequest,
  type GetApprovalRequest,
  type ListApprovalsRequest,
  ListApprovalsRequest_FilterSchema,
} from "#gen/service/v1/approval_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { decidedApproval, isPending, requireMayDecide } from "../../domain/approval/approval.ts";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { isActiveServiceAccount } from "../../domain/identity/executor.ts";
import { mayReadEveryAgentExecution } from "../../domain/policy/agent-policy.ts";
import { mayDecide } from "../../domain/policy/approval-deciders.ts";
import { type FoundApproval, findApproval, updateApproval } from "../../store/approval/approval.ts";
import { findApprovalPage, isSharedApproval } from "../../store/approval/approval-list.ts";
import { findGroupIdsOf } from "../../store/identity/group-membership.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import { findDeciders } from "../../store/policy/decider.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Reader, WriteTransaction } from "../../store/store.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { findSharingGroups, isSharedWith } from "../policy/shared-role.ts";
import { approvalEnded } from "./approval-end.ts";

/** The service of approvals. */
export class ApprovalService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  async listApprovals({ filter, pagination }: ListApprovalsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const policies = await findPolicies(this.#deps.store.reader, caller);
    const readsAll = mayReadEveryAgentExecution(policies, caller.role);
    const { reader } = this.#deps.store;
    const visible = {
      states: filter?.states ?? [],
      agentExecutionIds: filter?.agentExecutionIds ?? [],
      workflowExecutionIds: filter?.workflowExecutionIds ?? [],
      reader: readsAll
        ? undefined
        : {
            ...caller.subject,
            groupIds: await findGroupIdsOf(reader, caller, caller.subject.id),
            sharingGroupIds: await findSharingGroups(reader, caller, policies),
          },
    };
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListApprovals",
      parts: [filter && toJson(ListApprovalsRequest_FilterSchema, filter)],
      pagination,
      find: (lister, after, limit) => findApprovalPage(lister, caller, visible, after, limit),
    });
    return { ...page, approvals: rows };
  }

  async getApproval({ approvalId }: GetApprovalRequest, ctx: HandlerContext) {
    return { approval: await getReadableApproval(this.#deps.store.reader, callerOf(ctx), approvalId) };
  }

  decideApproval(req: DecideApprovalRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getReadableApproval(tx.db, caller, req.approvalId);
      const groupIds = await findGroupIdsOf(tx.db, caller, caller.subject.id);
      requireMayDecide(before, { caller, groupIds });
      const fitIds = await findFitIds(tx, caller, before);
      const decided = decidedApproval(before, req, { caller, groupIds, fitIds, now: tx.now });
      const approval = await updateApproval(tx, caller, before, decided);
      if (!isPending(approval)) await approvalEnded.call(tx, caller, approval);
      return { approval };
    });
  }
}

/**
 * Returns an approval that the caller may read.
 *
 * @throws DomainError NOT_FOUND, also when the approval exists but the caller may not read it
 */
async function getReadableApproval(db: Reader, caller: Caller, id: string): Promise<FoundApproval> {
  const approval = await findApproval(db, caller, id);
  if (approval && (await mayRead(db, caller, approval))) return approval;
  throw notFound("approval");
}

async function mayRead(
  db: Reader,
  caller: Caller,
  { id, creator, deciders, asker }: FoundApproval,
): Promise<boolean> {
  const { subject, role } = caller;
  if (creator?.id === subject.id && creator.principal === subject.principal) return true;
  if (deciders?.userIds.includes(subject.id)) return true;
  if (deciders?.groupIds.length) {
    const groupIds = await findGroupIdsOf(db, caller, subject.id);
    if (deciders.groupIds.some((each) => groupIds.includes(each))) return true;
  }
  const policies = await findPolicies(db, caller);
  if (mayReadEveryAgentExecution(policies, role)) return true;
  if (await isSharedApproval(db, caller, id)) return true;
  return isSharedWith(db, caller, policies, asker?.agentExecutionId ?? "");
}

/** Returns the ids of the earlier deciders who can still decide, without those who were blocked or have left. */
async function findFitIds(
  tx: WriteTransaction,
  caller: Caller,
  { decisions, deciders, creator, executor }: FoundApproval,
): Promise<ReadonlySet<string>> {
  const earlier = decisions.flatMap(({ by }) => (by ? [by] : []));
  if (earlier.length === 0 || !deciders) return new Set();
  const ids = earlier.map(({ id }) => id);
  const members = (await findDeciders(tx.db, caller, ids, deciders.groupIds)).filter(
    ({ userId, ...member }) =>
      mayDecide(
        deciders,
        creator,
        { ...member, subject: { id: userId, principal: Principal.USER } },
        executor,
      ),
  );
  const fit = new Set(members.map(({ userId }) => userId));
  for (const by of earlier.filter(({ principal }) => principal === Principal.SERVICE_ACCOUNT)) {
    const account = await findServiceAccount(tx.db, caller, by.id);
    if (
      isActiveServiceAccount(account, tx.now) &&
      mayDecide(deciders, creator, { subject: by, isAdministrator: false, groupIds: [] }, executor)
    )
      fit.add(by.id);
  }
  return fit;
}
