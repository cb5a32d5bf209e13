import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { AgentCodeContextSchema, AgentExecutionRole } from "#gen/service/v1/agent_pb.js";
import { type StartAgentRequest, StartAgentResponseSchema } from "#gen/service/v1/agent_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  requireAgentAllowed,
  requireAgentSettingsAllowed,
  requireLocalRunnersAllowed,
  requireModeAllowed,
} from "../../domain/policy/agent-policy.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import { requireRunnerAvailable } from "../../domain/runner/runner-heartbeat.ts";
import { hasSession } from "../../store/agent/agent-execution-search.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findStoredRunner, isLocal } from "../../store/runner/runner-life.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { findAction } from "../../store/workflow/workflow-action.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { insertStartedAgentExecution } from "./agent-execution.ts";
import { queueFirstMessage } from "./agent-input.ts";
import { resolvePlacement } from "./agent-placement.ts";
import { type Continuation, resolveContinuation } from "./agent-resume.ts";
import { resolveAgent } from "./resolve-agent.ts";
import { startSubagentAsAgent } from "./work/subagent-start.ts";

/**
 * Starts an agent execution as the caller. When an agent calls with the token of its environment, starts a sub-agent
 * of it. The agent's program starts when a runner leases the execution.
 */
export function startAgent(
  { store }: Pick<ServiceDependencies, "store">,
  req: StartAgentRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    if (caller.role === "environment") {
      return create(StartAgentResponseSchema, {
        agentExecutionId: await startSubagentAsAgent(tx, caller, req),
      });
    }
    const resumed = req.resumeFrom === "" ? undefined : await resolveContinuation(tx, caller, req);
    return create(StartAgentResponseSchema, { agentExecutionId: await startRun(tx, caller, req, resumed) });
  });
}

/**
 * Starts an agent execution as the caller.
 * @param resumed the conversation that it continues; undefined for none
 * @returns its id
 */
export async function startRun(
  tx: WriteTransaction,
  caller: Caller,
  req: StartAgentRequest,
  resumed: Continuation | undefined,
): Promise<string> {
  const policies = await findPolicies(tx.db, caller);
  const { agentId, name, runnerId, mode, extAgentSettings } = resumed ?? req;
  const agent = await resolveAgent(tx.db, caller, agentId);
  requireAgentAllowed(policies, agentId);
  if (extAgentSettings) requireAgentSettingsAllowed(policies, extAgentSettings);
  for (const each of [mode, ...(req.turnOptions?.modes ?? [])]) requireModeAllowed(policies, each);
  const { workflowActionId } = req;
  await requireReferences(tx, caller, policies, { runnerId, sessionId: req.sessionId, workflowActionId });
  const sessionId = (resumed ?? req).sessionId || tx.newId();
  const environmentName = name || agent.agent.name;
  const placement = await resolvePlacement(tx, caller, {
    codeContext: resumed ? inEnvironment(resumed.stored.environmentId) : req.codeContext,
    runnerId,
    sessionId,
    name: environmentName,
    isApiAgent: agent.agent.definition !== undefined,
  });
  const started = await insertStartedAgentExecution(tx, caller, {
    agent,
    creator: caller.subject,
    accountId: caller.accountId || null,
    role: AgentExecutionRole.DEFAULT,
    name,
    annotations: req.annotations,
    sessionId,
    environment: placement.environment,
    createdEnvironment: placement.created,
    runnerId: runnerId || null,
    codeContext: resumed ? resumed.stored.execution.spec?.codeContext : req.codeContext,
    mode,
    extAgentSettings,
    holdAfterLostTurn: req.holdAfterLostTurn ?? resumed?.stored.execution.spec?.holdAfterLostTurn ?? false,
    firstTurn: req.turnOptions,
    earlier: resumed?.earlier,
    fork: resumed?.fork,
    ...(workflowActionId !== undefined && { action: { id: workflowActionId, stepKey: null } }),
  });
  if (req.userInput) await queueFirstMessage(tx, caller, started, req.userInput);
  return started.execution.id;
}

function inEnvironment(environmentId: string) {
  return create(AgentCodeContextSchema, { context: { case: "environmentId", value: environmentId } });
}

/**
 * Checks that the runner, session and action that a request names exist in the organization.
 *
 * @throws DomainError NOT_FOUND; PHASE_UNSUITABLE for a runner that is not available; PolicyDenied for a local one
 */
async function requireReferences(
  { db }: WriteTransaction,
  caller: Caller,
  policies: Policies,
  {
    runnerId,
    sessionId,
    workflowActionId,
  }: Pick<StartAgentRequest, "runnerId" | "sessionId" | "workflowActionId">,
): Promise<void> {
  if (runnerId !== "") {
    const known = await findStoredRunner(db, caller, runnerId);
    if (!known) throw notFound("runner");
    requireRunnerAvailable(known.runner);
    if (isLocal(known)) requireLocalRunnersAllowed(policies);
  }
  if (sessionId !== "" && !(await hasSession(db, caller, sessionId))) throw notFound("session");
  if (workflowActionId !== undefined && !(await findAction(db, caller, workflowActionId))) {
    throw notFound("workflow execution action");
  }
}
