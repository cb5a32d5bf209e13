import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type StartSubagentRequest,
  StartSubagentResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionRole, AgentMode } from "#gen/service/v1/agent_pb.js";
import type { StartAgentRequest } from "#gen/service/v1/agent_service_pb.js";
import { canAsk } from "../../../domain/agent/agent.ts";
import { requireMayStartSubagents } from "../../../domain/agent/agent-execution.ts";
import { subagentOf, tokenOfNoAgent } from "../../../domain/agent/subagent/subagent-request.ts";
import { leaseLost, notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  requireAgentAllowed,
  requireAgentSettingsAllowed,
  requireSubagentQuota,
} from "../../../domain/policy/agent-policy.ts";
import { requireNothingAsked } from "../../../domain/policy/approval-policy.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import { requireNoDeceptiveText } from "../../../domain/text/deceptive-text.ts";
import { spanIdOf, under } from "../../../domain/trace/trace-context.ts";
import { findAgent } from "../../../store/agent/agent.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { countOpenSubagents, findSubagentByKey } from "../../../store/agent/agent-execution-search.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { agentOfToken } from "../../identity/environment-token.ts";
import { writeUnderLease } from "../../runner/held-lease.ts";
import { insertStartedAgentExecution } from "../agent-execution.ts";
import { queuePrompt } from "../agent-prompt.ts";
import { resolveAgent } from "../resolve-agent.ts";
import { findOrigins } from "../run-origin.ts";

/** Starts a sub-agent of the leased agent execution, in the same environment and with the same creator. */
export function startSubagent(
  deps: Pick<ServiceDependencies, "store">,
  req: StartSubagentRequest,
  ctx: HandlerContext,
) {
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    requireWorkKind(lease, WorkKind.AGENT, "an agent run");
    const parent = await findAgentExecution(tx.db, scope, lease.subject_id);
    if (!parent) throw leaseLost();
    const existing =
      req.key === "" ? undefined : await findSubagentByKey(tx.db, parent.execution.id, req.key);
    const { execution } = existing ?? (await start(tx, scope, parent, req));
    return create(StartSubagentResponseSchema, { agentExecutionId: execution.id });
  });
}

/**
 * Starts a sub-agent of the agent execution that the caller's token belongs to.
 *
 * @returns its id
 * @throws DomainError PERMISSION_DENIED for the token of an environment's other processes
 */
export async function startSubagentAsAgent(
  tx: WriteTransaction,
  caller: Caller,
  req: StartAgentRequest,
): Promise<string> {
  const parentId = await agentOfToken(tx.db, caller);
  const parent = parentId === undefined ? undefined : await findAgentExecution(tx.db, caller, parentId);
  if (!parent) throw tokenOfNoAgent();
  const { execution } = await start(tx, caller, parent, { ...subagentOf(req), key: "" });
  return execution.id;
}

async function start(
  tx: WriteTransaction,
  scope: Scope,
  parent: StoredAgentExecution,
  { agentId, name, prompt, key }: Pick<StartSubagentRequest, "agentId" | "name" | "prompt" | "key">,
): Promise<StoredAgentExecution> {
  const { id, metadata, spec } = parent.execution;
  requireMayStartSubagents(parent.execution);
  requireNoDeceptiveText(prompt, "prompt");
  const agent = await resolveAgent(tx.db, scope, agentId || (spec?.agentId ?? ""));
  const policies = await findPolicies(tx.db, scope);
  requireAgentAllowed(policies, agentId);
  if (!canAsk(agent.form)) {
    const parentAgent = await findAgent(tx.db, scope, spec?.agentId ?? "");
    // A parent that cannot ask for approvals either may start it.
    if (!parentAgent || canAsk(parentAgent.form))
      for (const origin of await findOrigins(tx.db, scope, parent)) requireNothingAsked(policies, origin);
  }
  // The policy may have changed since the parent started.
  if (spec?.extAgentSettings) requireAgentSettingsAllowed(policies, spec.extAgentSettings);
  requireSubagentQuota(policies, await countOpenSubagents(tx.db, id));
  const environment = await findEnvironment(tx.db, scope, parent.environmentId);
  if (!environment) throw notFound("environment");
  if (!metadata?.creator) throw new Error(`the agent run ${id} has no creator`);
  const started = await insertStartedAgentExecution(tx, scope, {
    agent,
    creator: metadata.creator,
    accountId: parent.accountId,
    role: AgentExecutionRole.DEFAULT,
    name,
    sessionId: metadata.sessionId,
    environment,
    createdEnvironment: false,
    runnerId: parent.runnerId,
    codeContext: spec?.codeContext,
    mode: AgentMode.EXECUTION,
    extAgentSettings: spec?.extAgentSettings,
    parent: { id, startKey: key },
    ...(metadata.trace && { trace: under(metadata.trace, spanIdOf(id)) }),
  });
  await queuePrompt(tx, started, prompt);
  // The parent's message contains it.
  tx.touch(id);
  return started;
}
