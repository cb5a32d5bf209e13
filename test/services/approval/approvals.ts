import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import {
  type Approval,
  type ApprovalDecidersSchema,
  ApprovalOptionSchema,
  ApprovalToolCallSchema,
  ApprovalDecidersSchema as Deciders,
  ApprovalOption_Kind as OptionKind,
  ToolKind,
} from "#gen/service/v1/approval_pb.js";
import {
  ApprovalService as Contract,
  type DecideApprovalRequest,
  DecideApprovalRequest_Decision as Decision,
} from "#gen/service/v1/approval_service_pb.js";
import { approvalContent } from "../../../src/domain/approval/approval.ts";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { askApproval } from "../../../src/services/approval/approval-asking.ts";
import { ApprovalService } from "../../../src/services/approval/approval-service.ts";
import type { FoundApproval } from "../../../src/store/approval/approval.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";

/** Approvals as a caller has them. */
export const approvalsOf = ({ deps }: TestStore, caller: Caller) =>
  operationsOf(Contract, new ApprovalService(deps), caller);

/** The options that agents usually offer. */
export const OPTIONS = [
  create(ApprovalOptionSchema, { id: "always", name: "Always", kind: OptionKind.ALLOW_ALWAYS }),
  create(ApprovalOptionSchema, { id: "once", name: "Yes", kind: OptionKind.ALLOW_ONCE }),
  create(ApprovalOptionSchema, { id: "never", name: "No", kind: OptionKind.REJECT_ONCE }),
];

/** Asks for a tool call of a run that the caller started. */
export function ask(
  { store }: TestStore,
  caller: Caller,
  agentExecutionId: string,
  {
    toolCallId = "call",
    deciders,
  }: {
    readonly toolCallId?: string;
    readonly deciders?: MessageInitShape<typeof ApprovalDecidersSchema>;
  } = {},
): Promise<FoundApproval> {
  const value = create(ApprovalToolCallSchema, {
    title: "Remove the folder build",
    kind: ToolKind.EXECUTE,
    tool: "shell",
    input: '{"command": "rm -r build"}',
  });
  const asker = { agentExecutionId, toolCallId, workflowExecutionId: "", workflowActionId: "" };
  return store.write(
    SYSTEM,
    "test",
    (tx) =>
      askApproval(tx, caller, {
        asked: approvalContent({ case: "toolCall", value }),
        asker,
        creator: caller.subject,
        options: OPTIONS,
        deciders: deciders && create(Deciders, deciders),
        policyFieldPath: "agentPolicy.approvals",
        isShared: false,
      }),
    within(caller),
  );
}

/** The request of a decision; it approves unless it says otherwise. */
export const decision = (
  { id: approvalId, digest }: Pick<Approval, "id" | "digest">,
  other: Partial<Omit<DecideApprovalRequest, "$typeName">> = {},
) => ({ approvalId, digest, decision: Decision.APPROVE, ...other });

/** Another user of the caller's organization. */
export async function colleague(
  made: TestStore,
  caller: Caller,
  email: string,
  role: "administrator" | "member" = "member",
): Promise<Caller> {
  const { organizationId } = caller;
  const administrator = role === "administrator";
  const found = await insertTestMember(made.store, made.keys, { organizationId, email, administrator });
  const tokenId = await made.issueTokenId(found.userId);
  return { ...userOf({ ...caller, accountId: found.accountId, tokenId }, found.userId), role };
}
