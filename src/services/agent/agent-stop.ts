import type { HandlerContext } from "@connectrpc/connect";
import type {
  DeleteAgentExecutionRequest,
  StopAgentExecutionRequest,
} from "#gen/service/v1/agent_service_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { requireAgentExecutionStopped } from "../../domain/agent/agent-execution.ts";
import { deletedEnvironment, wasNeverAssigned } from "../../domain/environment/environment.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { setCreatedEnvironment } from "../../store/agent/agent-created-environment.ts";
import { removeAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findOpenAgentExecutionsIn } from "../../store/agent/agent-execution-search.ts";
import { removeApprovalsOf } from "../../store/approval/approval-removal.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import { removeUnownedRecords } from "../../store/environment/unowned-records.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { changeEnvironment, deleteEnvironmentRow } from "../environment/environment-change.ts";
import { requireOwnershipOrRole } from "../policy/shared-role.ts";
import { haltAgentExecution } from "./halt-agent-execution.ts";
import { getReadableAgentExecution } from "./reading/agent-reading.ts";

/** Stops an agent execution without waiting for its runner. */
export function stopAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  { agentExecutionId }: StopAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    await haltAgentExecution(
      tx,
      caller,
      await getChangeableAgentExecution(tx, ctx, caller, agentExecutionId),
    );
    return {};
  });
}

/** Deletes an agent execution that has stopped, and the environment that was created for it. */
export function deleteAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  { agentExecutionId }: DeleteAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const { execution, createdEnvironment, environmentId } = await getChangeableAgentExecution(
      tx,
      ctx,
      caller,
      agentExecutionId,
    );
    requireAgentExecutionStopped(execution);
    await removeApprovalsOf(tx, caller, execution.id);
    await removeAgentExecution(tx, caller, execution);
    await removeUnownedRecords(tx, caller, environmentId);
    if (createdEnvironment) await deleteCreatedEnvironment(tx, caller, environmentId);
    return {};
  });
}

/**
 * Returns an agent execution that the caller may change.
 *
 * @throws DomainError NOT_FOUND, also when the caller may not read it; PERMISSION_DENIED when the caller is neither
 * its creator nor has the role through a group
 */
async function getChangeableAgentExecution(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const stored = await getReadableAgentExecution(tx.db, caller, id);
  const needed = { type: "agent_execution", id: stored.execution.id, role: ResourceRole.ADMIN } as const;
  await requireOwnershipOrRole(tx.db, ctx, caller, needed, stored.execution.metadata?.creator);
  return stored;
}

/** Deletes the environment, unless another agent execution works in it, which then becomes its owner. */
export async function deleteCreatedEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
): Promise<void> {
  const [successor] = await findOpenAgentExecutionsIn(tx.db, scope, id);
  if (successor) return setCreatedEnvironment(tx, successor.execution.id);
  const environment = await findEnvironment(tx.db, scope, id);
  if (!environment) return;
  if (wasNeverAssigned(environment)) return deleteEnvironmentRow(tx, scope, environment);
  const deleted = deletedEnvironment(environment);
  if (deleted) await changeEnvironment(tx, scope, environment, deleted);
}
