import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  TriggerVerdict,
  type Workflow,
  WorkflowExecutionTriggerSchema,
  type WorkflowTriggerContext,
  WorkflowTriggerEvent_Source,
} from "#gen/service/v1/workflow_pb.js";
import type { RetryFailedActionsRequest, StartWorkflowRequest } from "#gen/service/v1/workflow_service_pb.js";
import { contextMissing, DomainError, notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  requireMayRetryAs,
  requireMayRunContextAs,
  requireNoEventContext,
  requireStartable,
} from "../../../domain/workflow/execution/workflow-start.ts";
import { manualTrigger } from "../../../domain/workflow/trigger/trigger-match.ts";
import { checkContext } from "../../../domain/workflow/workflow-check.ts";
import { requireContextAllowed } from "../../../domain/workflow/workflow-policy.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { type Snapshot, type Store, within } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { callerOf, operationOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { withinQuota } from "../../call/storage-quota.ts";
import { getStartableWorkflow } from "../owned-workflow.ts";
import { recordTriggerEvent, type TriggerOccurrence } from "../trigger/trigger-ledger.ts";
import { disabledReason } from "../trigger/trigger-start.ts";
import { checkContextReferences } from "../workflow-references.ts";
import { retryExecution } from "./execution-retry.ts";
import { type ExecutionStart, startExecution } from "./execution-start.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/**
 * Starts a workflow manually and records that in the trigger ledger. If the caller may start the workflow, a rejected
 * start is recorded with the reason.
 */
export async function startWorkflow({ store }: Dependencies, req: StartWorkflowRequest, ctx: HandlerContext) {
  const entry = {
    workflowId: req.workflowId,
    source: WorkflowTriggerEvent_Source.MANUAL,
    payload: { parameters: req.parameters, contextOverride: req.contextOverride },
  };
  let refusal: Pick<TriggerOccurrence, "verdict" | "reason"> | undefined;
  try {
    return await writeAsCaller(store, ctx, async (tx, caller) => {
      const workflow = await getStartableWorkflow(tx, ctx, caller, req.workflowId);
      try {
        requireStartable(workflow);
        const start = await resolveManualStart(tx, caller, workflow, req);
        const execution = await withinQuota(tx, caller, () => startExecution(tx, start));
        await recordTriggerEvent(tx, caller, {
          ...entry,
          verdict: TriggerVerdict.STARTED,
          executionId: execution.id,
          ...(start.triggerIndex !== null && { triggerIndex: start.triggerIndex }),
        });
        return { workflowExecution: execution };
      } catch (error) {
        if (error instanceof DomainError) refusal = refusalOf(workflow, error);
        throw error;
      }
    });
  } catch (error) {
    // In a separate write, since the start's was rolled back. The caller gets the error of the start in either case.
    if (refusal) await recordRefusal(store, ctx, { ...entry, ...refusal }).catch(() => undefined);
    throw error;
  }
}

function refusalOf(workflow: Workflow, error: DomainError): Pick<TriggerOccurrence, "verdict" | "reason"> {
  const off = disabledReason(workflow);
  return off === undefined
    ? { verdict: TriggerVerdict.REFUSED, reason: error.message }
    : { verdict: TriggerVerdict.DISABLED, reason: off };
}

async function recordRefusal(
  store: Store,
  ctx: HandlerContext,
  occurrence: TriggerOccurrence,
): Promise<void> {
  const caller = callerOf(ctx);
  const { id, principal } = caller.subject;
  await store.write(
    { id, principal },
    operationOf(ctx),
    async (tx) => {
      if (await findWorkflow(tx.db, caller, occurrence.workflowId))
        await recordTriggerEvent(tx, caller, occurrence);
    },
    within(caller),
  );
}

/** Retries the failed actions of an execution in a new one. No trigger fires, so the ledger gets no entry. */
export function retryFailedActions(
  { store }: Dependencies,
  { workflowExecutionId }: RetryFailedActionsRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await findWholeExecution(tx.db, caller, workflowExecutionId);
    if (!stored) throw notFound("workflow execution");
    const workflow = await getStartableWorkflow(tx, ctx, caller, stored.execution.metadata?.workflowId ?? "");
    requireMayRetryAs(stored.execution, workflow, caller);
    return { workflowExecution: await retryExecution(tx, caller, stored, workflow, caller.subject) };
  });
}

/**
 * Returns the values for a manual start, with the context of the request or else that of the manual trigger.
 *
 * @throws DomainError CONTEXT_MISSING without either; PERMISSION_DENIED, VALUE_UNUSABLE, NOT_FOUND, PENDING_DELETION,
 * PHASE_UNSUITABLE, PolicyDenied for the requested one
 */
export async function resolveManualStart(
  tx: Snapshot,
  caller: Caller,
  workflow: Workflow,
  { contextOverride, parameters }: Pick<StartWorkflowRequest, "contextOverride" | "parameters">,
): Promise<ExecutionStart> {
  const { context, triggerIndex } = contextOverride
    ? { context: await requireUsableContext(tx, caller, workflow, contextOverride), triggerIndex: null }
    : manualContext(workflow);
  const trigger = create(WorkflowExecutionTriggerSchema, { trigger: { case: "manual", value: {} }, context });
  const { organizationId, subject: creator } = caller;
  const sourceSetters = contextOverride && [creator];
  return { organizationId, workflow, trigger, triggerIndex, creator, parameters, sourceSetters };
}

/**
 * Requires that the caller may use the context of a request, and that the projects and
 * classes in it exist and can be used.
 *
 * @throws DomainError PERMISSION_DENIED, VALUE_UNUSABLE, NOT_FOUND, PENDING_DELETION,
 *   PHASE_UNSUITABLE; PolicyDenied
 */
async function requireUsableContext(
  tx: Snapshot,
  caller: Caller,
  workflow: Workflow,
  context: WorkflowTriggerContext,
): Promise<WorkflowTriggerContext> {
  requireMayRunContextAs(workflow, caller);
  requireNoEventContext(context);
  checkContext(context, "contextOverride");
  requireContextAllowed(await findPolicies(tx.db, caller), context, caller.role);
  await checkContextReferences(tx.db, caller, [context]);
  return context;
}

/** Returns the context of the manual trigger. @throws DomainError CONTEXT_MISSING for a workflow without one */
function manualContext({ spec }: Workflow): { context: WorkflowTriggerContext; triggerIndex: number } {
  const manual = manualTrigger(spec?.triggers ?? []);
  if (!manual) throw contextMissing();
  return manual;
}
