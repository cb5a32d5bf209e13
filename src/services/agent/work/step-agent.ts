import { clone, create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type StartStepAgentRequest,
  StartStepAgentResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionRole, AgentMode } from "#gen/service/v1/agent_pb.js";
import {
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { promptOfStep, requireStepRunning, stepIndexOf, stepKey } from "../../../domain/agent/step-agent.ts";
import { leaseLost, notFound } from "../../../domain/error.ts";
import { requireExecutor } from "../../../domain/identity/executor.ts";
import { requireAgentAllowed, requireAgentSettingsAllowed } from "../../../domain/policy/agent-policy.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import { requireNoDeceptiveText } from "../../../domain/text/deceptive-text.ts";
import { stepSpanId, under } from "../../../domain/trace/trace-context.ts";
import { phaseOf, stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import type { StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findStepAgent } from "../../../store/agent/agent-execution-search.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { StoredLease } from "../../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { findAction, updateAction } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { getExecutorAsCaller } from "../../identity/executor.ts";
import { writeUnderLease } from "../../runner/held-lease.ts";
import { insertStartedAgentExecution } from "../agent-execution.ts";
import { queuePrompt } from "../agent-prompt.ts";
import { resolveAgent } from "../resolve-agent.ts";

/** Starts, once per attempt, the agent execution that executes a step of the leased action. */
export function startStepAgent(
  deps: Pick<ServiceDependencies, "store">,
  req: StartStepAgentRequest,
  ctx: HandlerContext,
) {
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    requireWorkKind(lease, WorkKind.ACTION, "an action");
    const key = stepKey(lease.attempt, req.stepIndex, req.outputKey);
    const { execution } =
      (await findStepAgent(tx.db, scope, lease.subject_id, key)) ??
      (await startForStep(tx, scope, lease, key, req));
    return create(StartStepAgentResponseSchema, { agentExecutionId: execution.id });
  });
}

async function startForStep(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  key: string,
  { stepIndex, outputKey }: StartStepAgentRequest,
): Promise<StoredAgentExecution> {
  const action = await findAction(tx.db, scope, lease.subject_id);
  const storedExecution = await findWholeExecution(tx.db, scope, action?.metadata?.workflowExecutionId ?? "");
  if (!action || !storedExecution || isFinalAction(phaseOf(action))) throw leaseLost();
  const prompt = promptOfStep(stepsOf(storedExecution.execution, action), stepIndex, outputKey);
  requireNoDeceptiveText(prompt, "prompt");
  requireStepRunning(action, key);
  const stored = await insertStartedAgentExecution(
    tx,
    scope,
    await startParameters(tx, scope, lease, action, storedExecution.execution, key),
  );
  await queuePrompt(tx, stored, prompt);
  const after = clone(WorkflowExecutionActionSchema, action);
  if (after.status) after.status.agentExecutionId = stored.execution.id;
  await updateAction(tx, scope, action, after);
  return stored;
}

/**
 * Returns the parameters with which the executor would start it now. Looks up the agent again, since the workflow may
 * have changed it.
 */
async function startParameters(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  action: WorkflowExecutionAction,
  execution: WorkflowExecution,
  key: string,
) {
  const { trace } = execution.metadata ?? {};
  const executor = await getExecutorAsCaller(tx, scope, requireExecutor(execution.metadata?.executor));
  const workflow = await findWorkflow(tx.db, scope, execution.metadata?.workflowId ?? "");
  const environment = await findEnvironment(tx.db, scope, action.status?.environmentId ?? "");
  if (!workflow) throw notFound("workflow");
  if (!environment) throw notFound("environment");
  const { agentId = "", extAgentSettings } = workflow.spec ?? {};
  const policies = await findPolicies(tx.db, scope);
  const agent = await resolveAgent(tx.db, scope, agentId);
  requireAgentAllowed(policies, agentId);
  if (extAgentSettings) requireAgentSettingsAllowed(policies, extAgentSettings);
  return {
    agent,
    creator: executor.subject,
    accountId: executor.accountId || null,
    role: AgentExecutionRole.WORKFLOW,
    name: action.metadata?.actionName ?? "",
    sessionId: "",
    environment,
    createdEnvironment: false,
    // The environment is on the machine of the runner that holds the action.
    runnerId: lease.leased_by,
    codeContext: action.spec?.context,
    mode: AgentMode.EXECUTION,
    extAgentSettings,
    action: { id: action.id, stepKey: key },
    ...(trace && { trace: under(trace, stepSpanId(action.id, stepIndexOf(key))) }),
  };
}
