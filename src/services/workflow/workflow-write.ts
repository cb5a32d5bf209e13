import type { HandlerContext } from "@connectrpc/connect";
import type { Workflow, WorkflowAction } from "#gen/service/v1/workflow_pb.js";
import type { CreateWorkflowRequest, UpdateWorkflowRequest } from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireAnnotationsKnown } from "../../domain/identity/annotation/annotations.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireAgentAllowed, requireAgentSettingsAllowed } from "../../domain/policy/agent-policy.ts";
import { approvalAt, requireApprovalStepsKnown } from "../../domain/workflow/execution/approval-step.ts";
import { requireStepLimit } from "../../domain/workflow/execution/workflow-expansion.ts";
import {
  checkWorkflowParameters,
  requireDefaults,
} from "../../domain/workflow/parameter/workflow-parameters.ts";
import { withForkWork } from "../../domain/workflow/trigger/fork-work.ts";
import {
  changedWorkflow,
  hasSameParameterUse,
  newWorkflow,
  onlyDisables,
  requestedExecutor,
  requireMayRunAs,
  withNextInstants,
  withWebhookUrl,
} from "../../domain/workflow/workflow.ts";
import { checkAction, checkTriggers } from "../../domain/workflow/workflow-check.ts";
import { requireContextAllowed, requireStepsAllowed } from "../../domain/workflow/workflow-policy.ts";
import { requireWorkflowFits } from "../../domain/workflow/workflow-size.ts";
import {
  ANNOTATIONS_LEVEL,
  APPROVAL_STEPS_LEVEL,
  FORK_WORK_LEVEL,
  mayStore,
} from "../../store/feature-level.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findWorkflow, insertWorkflow, updateWorkflow } from "../../store/workflow/workflow.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { requireAllSatisfiable } from "../policy/satisfiable-deciders.ts";
import { getChangeableWorkflow } from "./owned-workflow.ts";
import { createWebhookSecret } from "./webhook-secret.ts";
import { checkContextReferences, checkExecutor } from "./workflow-references.ts";

type Dependencies = Pick<ServiceDependencies, "store" | "keys" | "baseUrl" | "now">;

/** Creates a workflow, with its webhook secret. */
export function createWorkflow(
  { store, keys, baseUrl }: Dependencies,
  asked: CreateWorkflowRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const req = writtenRequest(tx, asked);
    const workflow = newWorkflow(req, { id: tx.newId(), creator: caller.subject, now: tx.now });
    await checkContent(tx, caller, req, workflow);
    const { id } = await insertWorkflow(tx, caller, workflow);
    await createWebhookSecret(tx, keys, id);
    return { workflow: toResponseForm(workflow, baseUrl(), tx.now) };
  });
}

/** Returns a workflow. @throws DomainError NOT_FOUND */
export async function getWorkflow(
  { store, baseUrl, now }: Dependencies,
  workflowId: string,
  ctx: HandlerContext,
) {
  const workflow = await findWorkflow(store.reader, callerOf(ctx), workflowId);
  if (!workflow) throw notFound("workflow");
  return { workflow: toResponseForm(workflow, baseUrl(), now()) };
}

/** Updates the fields of a workflow that the request names, all or none. */
export function changeWorkflow(
  { store, baseUrl }: Dependencies,
  asked: UpdateWorkflowRequest,
  ctx: HandlerContext,
) {
  const change = async (tx: WriteTransaction, caller: Caller) => {
    const req = writtenRequest(tx, asked);
    const before = await getChangeableWorkflow(tx, ctx, caller, req.workflowId);
    const after = changedWorkflow(before, req, tx.now);
    if (!after) return { workflow: toResponseForm(before, baseUrl(), tx.now) };
    requireMayRunAs(before, after, caller);
    await checkContent(tx, caller, req, after, before);
    await updateWorkflow(tx, caller, before, after);
    return { workflow: toResponseForm(after, baseUrl(), tx.now) };
  };
  return writeAsCaller(store, ctx, change, { isExempt: onlyDisables(asked) || undefined });
}

/** Returns a request whose triggers have the setting for fork work filled in. */
function writtenRequest<T extends CreateWorkflowRequest | UpdateWorkflowRequest>(
  tx: WriteTransaction,
  req: T,
): T {
  return { ...req, triggers: withForkWork(req.triggers, mayStore(tx, FORK_WORK_LEVEL)) };
}

function toResponseForm(workflow: Workflow, baseUrl: string, now: number): Workflow {
  return withNextInstants(withWebhookUrl(workflow, baseUrl), now);
}

/**
 * Checks the parts of a workflow that a request writes. Unchanged parts may have become unusable and are not checked.
 */
async function checkContent(
  tx: WriteTransaction,
  caller: Caller,
  req: CreateWorkflowRequest | UpdateWorkflowRequest,
  after: Workflow,
  before?: Workflow,
): Promise<void> {
  requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
  checkTriggers(req.triggers, tx.now);
  if (req.action) checkAction(req.action, "action");
  if (req.report) checkAction(req.report, "report");
  requireWorkflowFits(after, before);
  checkWorkflowParameters(req);
  if (after.spec && !(before && hasSameParameterUse(before, after))) requireDefaults(after.spec);
  for (const { context } of after.spec?.triggers ?? []) {
    if (context) requireStepLimit(context, after.spec?.action);
  }
  await requireApprovalsPossible(tx, caller, req);
  const contexts = req.triggers.flatMap(({ context }) => context ?? []);
  const policies = await findPolicies(tx.db, caller);
  for (const context of contexts) requireContextAllowed(policies, context, caller.role);
  if (req.action) requireStepsAllowed(policies, req.action);
  requireAgentAllowed(policies, req.agentId ?? "");
  if (req.extAgentSettings) requireAgentSettingsAllowed(policies, req.extAgentSettings);
  await checkContextReferences(tx.db, caller, contexts);
  const executor = requestedExecutor(req, before);
  if (executor) await checkExecutor(tx, caller, executor);
}

/**
 * Requires that the members of the organization could satisfy the approval steps that a request writes.
 *
 * @throws DomainError VALUE_UNUSABLE; PHASE_UNSUITABLE while servers run that do not know such steps
 */
async function requireApprovalsPossible(
  tx: WriteTransaction,
  scope: Scope,
  {
    action,
    report,
  }: { readonly action?: WorkflowAction | undefined; readonly report?: WorkflowAction | undefined },
): Promise<void> {
  const steps = Object.entries({ action, report }).flatMap(([name, part]) =>
    (part?.steps ?? []).flatMap((_, index) => {
      const approval = approvalAt(part?.steps ?? [], index);
      return approval ? [{ approval, field: `${name}.steps[${index}].approval.deciders` }] : [];
    }),
  );
  if (steps.length === 0) return;
  requireApprovalStepsKnown(mayStore(tx, APPROVAL_STEPS_LEVEL));
  await requireAllSatisfiable(
    tx,
    scope,
    steps.map(({ approval: { deciders }, field }) => ({ deciders, field })),
  );
}
