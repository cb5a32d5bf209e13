import type { HandlerContext } from "@connectrpc/connect";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type {
  DeleteAgentExecutionRequest,
  StopAgentExecutionRequest,
} from "#gen/service/v1/agent_service_pb.js";
import { hasStopped, phaseOfRun } from "../../domain/agent/agent-execution.ts";
import { deletedEnvironment, isUntouched } from "../../domain/environment/environment.ts";
import { notFound, phaseUnsuitable } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  findAgentExecution,
  removeAgentExecution,
  type StoredAgentExecution,
  setMadeEnvironment,
} from "../../store/agent/agent-execution.ts";
import { findOpenAgentExecutions } from "../../store/agent/agent-execution-search.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { refuseStranger, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { changeEnvironment, dropEnvironment } from "../environment/environment-change.ts";
import { stopRun } from "./agent-end.ts";

/** Stops a run without waiting for its runner. */
export function stopAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  { agentExecutionId }: StopAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    await stopRun(tx, caller, await ownedRun(tx, ctx, caller, agentExecutionId));
    return {};
  });
}

/** Deletes a run that has stopped, and an environment that was made for it. */
export function deleteAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  { agentExecutionId }: DeleteAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const { execution, madeEnvironment, environmentId } = await ownedRun(tx, ctx, caller, agentExecutionId);
    if (!hasStopped(execution)) {
      const message = "the agent run has not stopped: stop it with StopAgentExecution first";
      throw phaseUnsuitable("agent execution", Phase[phaseOfRun(execution)] ?? "", message);
    }
    await removeAgentExecution(tx, caller, execution);
    if (madeEnvironment) await deleteMadeEnvironment(tx, caller, environmentId);
    return {};
  });
}

/**
 * A run that the caller may change.
 *
 * @throws DomainError NOT_FOUND; PERMISSION_DENIED for that of another
 */
export async function ownedRun(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const stored = await findAgentExecution(tx.db, caller, id);
  if (!stored) throw notFound("agent execution");
  refuseStranger(ctx, stored.execution.metadata?.creator);
  return stored;
}

/** Unless another run works in it by now: then it goes with that one. */
async function deleteMadeEnvironment(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  const [heir] = await findOpenAgentExecutions(tx.db, scope, { environmentId: id });
  if (heir) return setMadeEnvironment(tx, heir.execution.id);
  const environment = await findEnvironment(tx.db, scope, id);
  if (!environment) return;
  if (isUntouched(environment)) return dropEnvironment(tx, scope, environment);
  const deleted = deletedEnvironment(environment);
  if (deleted) await changeEnvironment(tx, scope, environment, deleted);
}
