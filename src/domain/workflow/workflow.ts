import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ExtAgentSettings, ExtAgentSettingsSchema } from "#gen/service/v1/agent_pb.js";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type Workflow,
  Workflow_NextInstantsSchema,
  Workflow_SpecSchema,
  WorkflowSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  type CreateWorkflowRequest,
  type UpdateWorkflowRequest,
  UpdateWorkflowRequestSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { pendingDeletion, permissionDenied } from "../error.ts";
import { maskedPaths } from "../field-mask.ts";
import { setAnnotations } from "../identity/annotation/annotations.ts";
import type { Caller } from "../identity/caller.ts";
import { upcomingInstants } from "../project/schedule.ts";
import { fold } from "../text/fold.ts";

/** Values of a new workflow that the request does not contain. */
export interface WorkflowCreationContext {
  readonly id: string;
  readonly creator: Subject;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns a new, enabled workflow. Its webhook URL is not included: see {@link withWebhookUrl}. */
export function newWorkflow(
  req: CreateWorkflowRequest,
  { id, creator, now }: WorkflowCreationContext,
): Workflow {
  const { name, description, triggers, action, report, agentId, parameters } = req;
  const createdAt = timestampFromMs(now);
  const executor = isNamed(req.executor) ? req.executor : creator;
  const workflow = create(WorkflowSchema, {
    id,
    metadata: { name, description, creator, createdAt, updatedAt: createdAt, executor },
    spec: {
      triggers,
      agentId,
      parameters,
      ...(action && { action }),
      ...(report && { report }),
      ...(hasChoice(req.extAgentSettings) && { extAgentSettings: req.extAgentSettings }),
    },
  });
  if (workflow.metadata) setAnnotations(workflow.metadata, req);
  return workflow;
}

/**
 * Returns the workflow after an update: a field that the request sets replaces the stored value;
 * one that it sets empty or that only its mask names goes back to its initial value. Undefined when
 * nothing changes.
 * @param now milliseconds since 1970 UTC
 * @throws DomainError PENDING_DELETION; FIELD_MASK_INVALID for a mask that names a field that
 * cannot be cleared
 */
export function changedWorkflow(
  present: Workflow,
  req: UpdateWorkflowRequest,
  now: number,
): Workflow | undefined {
  requireWorkflowNotPendingDeletion(present);
  const named = maskedFields(req);
  const workflow = clone(WorkflowSchema, present);
  const { metadata, spec } = workflow;
  if (!metadata || !spec) return undefined;
  if (req.name !== undefined) metadata.name = req.name;
  if (req.description !== undefined || named.has("description")) metadata.description = req.description ?? "";
  if (req.executor || named.has("executor")) {
    const executor = isNamed(req.executor) ? req.executor : metadata.creator;
    if (executor) metadata.executor = executor;
  }
  setAnnotations(metadata, req);
  if (!req.annotations && named.has("annotations")) delete metadata.annotations;
  if (req.triggers.length > 0 || named.has("triggers")) spec.triggers = req.triggers;
  if (req.parameters.length > 0 || named.has("parameters")) spec.parameters = req.parameters;
  if (req.action) spec.action = req.action;
  if (req.report) spec.report = req.report;
  else if (named.has("report")) delete spec.report;
  if (req.disabled !== undefined || named.has("disabled")) spec.disabled = req.disabled ?? false;
  if (req.agentId !== undefined || named.has("agent_id")) spec.agentId = req.agentId ?? "";
  if (hasChoice(req.extAgentSettings)) spec.extAgentSettings = req.extAgentSettings;
  else if (req.extAgentSettings || named.has("ext_agent_settings")) delete spec.extAgentSettings;
  if (equals(WorkflowSchema, present, workflow)) return undefined;
  metadata.updatedAt = timestampFromMs(now);
  return workflow;
}

/** Returns whether a request only disables a workflow. */
export function onlyDisables(req: UpdateWorkflowRequest): boolean {
  const { workflowId } = req;
  return equals(
    UpdateWorkflowRequestSchema,
    req,
    create(UpdateWorkflowRequestSchema, { workflowId, disabled: true }),
  );
}

/**
 * Returns the executor that a request names in place of the present one; undefined when it stays or
 * is reset.
 */
export function requestedExecutor(
  { executor }: Pick<UpdateWorkflowRequest, "executor">,
  present?: Workflow,
): Subject | undefined {
  if (!isNamed(executor)) return undefined;
  const before = present?.metadata?.executor;
  return before && equals(SubjectSchema, executor, before) ? undefined : executor;
}

/**
 * Requires that the caller may change a workflow. Without this check, a member could act as another
 * person whom an administrator has made the executor of the member's workflow.
 * @throws DomainError PERMISSION_DENIED for a change of the workflow's work or its times, when the
 * caller is neither an administrator nor the person that it runs as
 */
export function requireMayRunAs(before: Workflow, after: Workflow, caller: Caller): void {
  const executor = after.metadata?.executor;
  if (caller.role === "administrator" || executor?.principal !== Principal.USER) return;
  if (executor.id === caller.subject.id || hasSameWork(before, after)) return;
  throw permissionDenied(
    "update_workflow",
    "the workflow runs as another person: name yourself or a service account as its executor with this change",
  );
}

/** Returns the workflow marked for removal; undefined when it already is. */
export function deletedWorkflow(present: Workflow, now: number): Workflow | undefined {
  if (present.spec?.deleting) return undefined;
  const workflow = clone(WorkflowSchema, present);
  if (workflow.spec) workflow.spec.deleting = true;
  if (workflow.metadata) workflow.metadata.updatedAt = timestampFromMs(now);
  return workflow;
}

/**
 * Requires that a workflow is not marked for removal.
 * @throws DomainError PENDING_DELETION
 */
export function requireWorkflowNotPendingDeletion({ spec }: Workflow): void {
  if (spec?.deleting) throw pendingDeletion("workflow");
}

/**
 * Returns the workflow as responses show it.
 * @param baseUrl URL under which clients reach the server, without a slash at its end
 */
export function withWebhookUrl(workflow: Workflow, baseUrl: string): Workflow {
  return { ...workflow, webhookUrl: `${baseUrl}/workflows/${workflow.id}/webhooks` };
}

/**
 * Returns the workflow with the next instants of its time triggers.
 * @param now milliseconds since 1970 UTC
 */
export function withNextInstants(workflow: Workflow, now: number): Workflow {
  const { spec } = workflow;
  if (!spec || spec.disabled || spec.deleting) return workflow;
  const nextInstants = spec.triggers.flatMap(({ trigger }, triggerIndex) => {
    if (trigger.case !== "time") return [];
    const instants = upcomingInstants(trigger.value, now).map((ms) => timestampFromMs(ms));
    return [create(Workflow_NextInstantsSchema, { triggerIndex, instants })];
  });
  return { ...workflow, nextInstants };
}

/**
 * Returns the text that `search` looks through: one folded line each for name, description and id.
 */
export function workflowSearchText({ id, metadata }: Workflow): string {
  return fold([metadata?.name ?? "", metadata?.description ?? "", id].join("\n"));
}

/** Returns the fields that the mask names. Name and action are replaced, never cleared. */
function maskedFields({ updateMask, name, action }: UpdateWorkflowRequest): ReadonlySet<string> {
  return maskedPaths(UpdateWorkflowRequestSchema, updateMask, [
    "workflow_id",
    ...(name === undefined ? ["name"] : []),
    ...(action ? [] : ["action"]),
  ]);
}

/**
 * Returns whether two states of a workflow, if enabled, do the same work at the same times.
 */
function hasSameWork(before: Workflow, after: Workflow): boolean {
  const present = clone(WorkflowSchema, before).spec;
  if (!present || !after.spec) return false;
  present.disabled = after.spec.disabled;
  return equals(Workflow_SpecSchema, present, after.spec);
}

/**
 * Returns whether two states of a workflow are equal in the fields that decide which parameters a
 * start needs.
 */
export function hasSameParameterUse({ spec: before }: Workflow, { spec: after }: Workflow): boolean {
  const [present, next] = [before, after].map((spec) =>
    create(Workflow_SpecSchema, {
      triggers: spec?.triggers ?? [],
      parameters: spec?.parameters ?? [],
      ...(spec?.action && { action: spec.action }),
      ...(spec?.report && { report: spec.report }),
    }),
  );
  return present !== undefined && next !== undefined && equals(Workflow_SpecSchema, present, next);
}

function isNamed(subject: Subject | undefined): subject is Subject {
  return subject !== undefined && (subject.id !== "" || subject.principal !== 0);
}

function hasChoice(settings: ExtAgentSettings | undefined): settings is ExtAgentSettings {
  return settings !== undefined && !equals(ExtAgentSettingsSchema, settings, create(ExtAgentSettingsSchema));
}
