import type { HandlerContext } from "@connectrpc/connect";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findWorkflow } from "../../store/workflow/workflow.ts";
import { requireOwnership } from "../call/call.ts";

/**
 * Returns a workflow that the caller may change: as its creator or an administrator.
 *
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function getOwnedWorkflow(
  tx: WriteTransaction,
  ctx: HandlerContext,
  scope: Scope,
  workflowId: string,
): Promise<Workflow> {
  const workflow = await findWorkflow(tx.db, scope, workflowId);
  if (!workflow) throw notFound("workflow");
  requireOwnership(ctx, workflow.metadata?.creator);
  return workflow;
}
