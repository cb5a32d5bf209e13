import type { ApprovalDeciders, ApprovalOption } from "#gen/service/v1/approval_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  type AskedText,
  type Asker,
  DEFAULT_LIFETIME_MS,
  newApproval,
} from "../../domain/approval/approval.ts";
import { deciders } from "../../domain/policy/approval-deciders.ts";
import { digestOf, type FoundApproval, insertApproval } from "../../store/approval/approval.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** A request for an approval, with who asks and who decides. */
export interface ApprovalAsk {
  readonly asked: AskedText;
  readonly asker: Asker;
  /** The subject that started the agent execution or the execution of the workflow, or that asks for a push. */
  readonly creator: Subject;
  /** The subject that the execution of the workflow runs as, of a step alone. */
  readonly executor?: Subject | undefined;
  /** Default none. */
  readonly options?: readonly ApprovalOption[];
  /** Undefined for those who may send to the run. */
  readonly deciders?: ApprovalDeciders | undefined;
  /** Path of the policy that has it asked; empty for none. */
  readonly policyFieldPath: string;
  /** True when every member may read it. */
  readonly isShared: boolean;
  /** Default 24 hours. */
  readonly lifetimeMs?: number | undefined;
}

/** Asks for an approval. The caller of the function has checked that nobody has asked for it before. */
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
