import type { HandlerContext } from "@connectrpc/connect";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireMayStartShared } from "../../domain/workflow/execution/workflow-start.ts";
import type { Snapshot, WriteTransaction } from "../../store/store.ts";
import { findWorkflow } from "../../store/workflow/workflow.ts";
import { operationOf, requireOwnership } from "../call/call.ts";
import { requireOwnershipOrRole, requireOwnershipOrRoleFor } from "../policy/shared-role.ts";

/**
 * Returns a workflow that the caller owns, as its creator or as an administrator. Group roles do not count.
 *
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function getOwnedWorkflow(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  workflowId: string,
): Promise<Workflow> {
  const workflow = await getWorkflow(tx, caller, workflowId);
  requireOwnership(ctx, workflow.metadata?.creator);
  return workflow;
}

/**
 * Returns a workflow that the caller may change, as its creator, as an administrator or through a group's role.
 *
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function getChangeableWorkflow(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  workflowId: string,
): Promise<Workflow> {
  const workflow = await getWorkflow(tx, caller, workflowId);
  const needed = { type: "workflow", id: workflow.id, role: ResourceRole.ADMIN } as const;
  await requireOwnershipOrRole(tx.db, ctx, caller, needed, workflow.metadata?.creator);
  return workflow;
}

/**
 * Returns a workflow that the caller may start.
 *
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function getStartableWorkflow(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  workflowId: string,
): Promise<Workflow> {
  const workflow = await getWorkflow(tx, caller, workflowId);
  await requireMayStart(tx, operationOf(ctx), caller, workflow);
  return workflow;
}

/**
 * Requires that the caller may start a workflow, as its creator, as an administrator, or through a group's role. The
 * role is not sufficient for a workflow that runs as another person.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export async function requireMayStart(
  { db }: Pick<Snapshot, "db">,
  operation: string,
  caller: Caller,
  workflow: Workflow,
): Promise<void> {
  const { id, metadata } = workflow;
  const needed = { type: "workflow", id, role: ResourceRole.USE } as const;
  const isShared = await requireOwnershipOrRoleFor(db, operation, caller, needed, metadata?.creator);
  if (isShared) requireMayStartShared(workflow, caller);
}

async function getWorkflow(tx: WriteTransaction, caller: Caller, workflowId: string): Promise<Workflow> {
  const workflow = await findWorkflow(tx.db, caller, workflowId);
  if (!workflow) throw notFound("workflow");
  return workflow;
}
