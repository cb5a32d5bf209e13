import type { ApprovalDeciders, ApprovalOption } from "#gen/service/v1/approval_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  type ApprovalContent,
  type Asker,
  DEFAULT_LIFETIME_MS,
  newApproval,
} from "../../domain/approval/approval.ts";
import { deciders } from "../../domain/policy/approval-deciders.ts";
import { digestOf, type FoundApproval, insertApproval } from "../../store/approval/approval.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** A request for an approval: what is asked, the asker and the deciders. */
export interface ApprovalAsk {
  readonly asked: ApprovalContent;
  readonly asker: Asker;
  /** The subject that started the agent execution or the execution of the workflow, or that asks for a push. */
  readonly creator: Subject;
  /** The subject that the execution of the workflow runs as; only for requests of a step. */
  readonly executor?: Subject | undefined;
  /** Default none. */
  readonly options?: readonly ApprovalOption[];
  /** When undefined, everybody who may send to the run may decide. */
  readonly deciders?: ApprovalDeciders | undefined;
  /** Path of the policy that requires the approval; empty for none. */
  readonly policyFieldPath: string;
  /** True when every member may read it. */
  readonly isShared: boolean;
  /** Default 24 hours. */
  readonly lifetimeMs?: number | undefined;
}

/** Asks for an approval. The caller must have checked that there is no earlier request. */
export function askApproval(tx: WriteTransaction, scope: Scope, ask: ApprovalAsk): Promise<FoundApproval> {
  const { asked, asker, creator, executor, options = [], policyFieldPath, isShared } = ask;
  const approval = newApproval({
    ...asked,
    id: tx.newId(),
    digest: digestOf(asked.requestJson),
    asker,
    creator,
    ...(executor && { executor }),
    options,
    deciders: deciders(ask.deciders),
    policyFieldPath,
    lifetimeMs: ask.lifetimeMs ?? DEFAULT_LIFETIME_MS,
    now: tx.now,
  });
  return insertApproval(tx, scope, approval, isShared);
}
