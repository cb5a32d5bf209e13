import { Link } from "@tanstack/react-router";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import { approvalTitle } from "./approval-state.ts";

/** The title of an approval in a list, which leads to its page. */
export function ApprovalLink({ approval }: { readonly approval: Approval }) {
  return (
    <Link className="row-link" to="/approvals/$approvalId" params={{ approvalId: approval.id }}>
      {approvalTitle(approval)}
    </Link>
  );
}
