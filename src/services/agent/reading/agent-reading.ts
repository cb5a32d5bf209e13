import type { AgentExecution } from "#gen/service/v1/agent_pb.js";
import { withProgress } from "../../../domain/agent/agent-execution.ts";
import { applyChanges } from "../../../domain/environment/environment-changes.ts";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { mayReadAgentExecution } from "../../../domain/policy/agent-policy.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findSubagents } from "../../../store/agent/agent-execution-search.ts";
import { findPendingApprovalIds } from "../../../store/approval/approval.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { findChangesOf } from "../../../store/environment/environment-changes.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Reader, Scope } from "../../../store/store.ts";
import { isSharedWith } from "../../policy/shared-role.ts";

/**
 * Returns an agent execution that the caller may read.
 *
 * @throws DomainError NOT_FOUND, also when the caller may not read it
 */
export async function getReadableAgentExecution(
  db: Reader,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const stored = await findAgentExecution(db, caller, id);
  if (!stored) throw notFound("agent execution");
  const policies = await findPolicies(db, caller);
  const owners = {
    creator: stored.execution.metadata?.creator,
    runnerId: caller.role === "runner" ? await runnerOf(db, caller, stored) : "",
  };
  if (mayReadAgentExecution(policies, caller, owners)) return stored;
  if (await isSharedWith(db, caller, policies, stored.execution.id)) return stored;
  throw notFound("agent execution");
}

/** Returns the id of an agent execution's runner: the requested one, or that of its environment; empty for none. */
export async function runnerOf(
  db: Reader,
  scope: Scope,
  { runnerId, environmentId }: StoredAgentExecution,
): Promise<string> {
  if (runnerId !== null) return runnerId;
  return (await findEnvironment(db, scope, environmentId))?.metadata?.runnerId ?? "";
}

/** Returns an agent execution as responses have it, with its progress, sub-agents, pending approvals and outputs. */
export async function presentAgentExecution(
  db: Reader,
  scope: Scope,
  stored: StoredAgentExecution,
): Promise<AgentExecution> {
  const [presented] = await presentAgentExecutions(db, scope, [stored]);
  return presented ?? stored.execution;
}

/** Returns agent executions as responses have them, in the same order. */
export async function presentAgentExecutions(
  db: Reader,
  scope: Scope,
  stored: readonly StoredAgentExecution[],
): Promise<AgentExecution[]> {
  const ids = stored.map(({ execution }) => execution.id);
  const subagents = await findSubagents(db, scope, ids);
  const approvals = await findPendingApprovalIds(db, scope, ids);
  const environments = [...new Set(stored.map(({ environmentId }) => environmentId))];
  const changes = await findChangesOf(db, scope, environments);
  return stored.map(({ execution, progress, environmentId }) => {
    const { id } = execution;
    const presented = withProgress(execution, progress, subagents.get(id) ?? [], approvals.get(id));
    const changed = changes.get(environmentId);
    if (changed && presented.status) applyChanges(presented.status, changed.changes, changed.version);
    return presented;
  });
}
