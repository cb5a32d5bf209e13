import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  type Workflow,
  Workflow_NextInstantsSchema,
  type WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import type { PreviewWorkflowRequest } from "#gen/service/v1/workflow_service_pb.js";
import { DomainError, notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { requireValidSchedule, type Schedule, upcomingInstants } from "../../../domain/project/schedule.ts";
import { actionSources, searchOf } from "../../../domain/workflow/execution/workflow-expansion.ts";
import { requireStartable } from "../../../domain/workflow/execution/workflow-start.ts";
import {
  missingKeys,
  type RenderedTemplate,
} from "../../../domain/workflow/parameter/workflow-parameters.ts";
import { manualTrigger } from "../../../domain/workflow/trigger/trigger-match.ts";
import type { Snapshot } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { requireMayStart } from "../owned-workflow.ts";
import { findProjectNames } from "./execution-expand.ts";
import { checkStart, templateOf } from "./execution-start.ts";
import { resolveManualStart } from "./workflow-start.ts";

const START = "service.v1.WorkflowService/StartWorkflow";

/**
 * Returns what a start would do and when time triggers are due, without writing anything.
 * @throws DomainError NOT_FOUND, VALUE_UNUSABLE
 */
export async function previewWorkflow(
  { store, now }: Pick<ServiceDependencies, "store" | "now">,
  caller: Caller,
  req: PreviewWorkflowRequest,
) {
  const snapshot = { db: store.reader, now: now() };
  for (const [index, schedule] of req.schedules.entries()) {
    requireValidSchedule(schedule, snapshot.now, `schedules[${index}]`);
  }
  const schedules = req.schedules.map((schedule, index) => instantsOf(schedule, index, snapshot.now));
  if (req.workflowId === "") return { schedules };
  const workflow = await findWorkflow(snapshot.db, caller, req.workflowId);
  if (!workflow) throw notFound("workflow");
  return {
    ...(await previewStart(snapshot, caller, workflow, req)),
    schedules: req.schedules.length > 0 ? schedules : instantsOfTriggers(workflow, snapshot.now),
  };
}

async function previewStart(
  snapshot: Snapshot,
  caller: Caller,
  workflow: Workflow,
  req: PreviewWorkflowRequest,
) {
  const refusal = await findRefusal(snapshot, caller, workflow, req);
  const manual = manualTrigger(workflow.spec?.triggers ?? []);
  const context = req.contextOverride ?? manual?.context;
  if (!context) return { unusedParameters: Object.keys(req.parameters).sort(), ...refusal };
  const triggerIndex = req.contextOverride ? null : (manual?.triggerIndex ?? null);
  return {
    ...(await previewSources(snapshot, caller, workflow, context)),
    ...previewParameters(templateOf(workflow, context, triggerIndex), req.parameters),
    ...refusal,
  };
}

/** Returns the parameters of the preview; none for an override with a malformed expression, which fails the start. */
function previewParameters(template: RenderedTemplate, parameters: Readonly<Record<string, string>>) {
  try {
    const used = missingKeys({ ...template, declared: [] }, {});
    const unusedParameters = Object.keys(parameters).filter((key) => !used.includes(key));
    return {
      missingParameters: missingKeys(template, parameters),
      unusedParameters: unusedParameters.sort(),
    };
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return {};
  }
}

/**
 * Returns the error that StartWorkflow would fail with. Calls the same checks in the same order.
 * @throws DomainError NOT_FOUND
 */
async function findRefusal(
  snapshot: Snapshot,
  caller: Caller,
  workflow: Workflow,
  req: PreviewWorkflowRequest,
) {
  try {
    await requireMayStart(snapshot, START, caller, workflow);
    requireStartable(workflow);
    await checkStart(snapshot, await resolveManualStart(snapshot, caller, workflow, req));
    return {};
  } catch (error) {
    // NOT_FOUND is an error of the preview itself, as in every operation.
    if (!(error instanceof DomainError) || error.reason === ErrorReason.NOT_FOUND) throw error;
    const { reason, message, metadata } = error;
    return { refusal: { reason, message, field: metadata.field ?? "" } };
  }
}

async function previewSources(
  snapshot: Snapshot,
  caller: Caller,
  { spec }: Workflow,
  context: WorkflowTriggerContext,
) {
  const maxTotal = spec?.action?.limits?.maxTotal;
  const search = searchOf(context);
  if (search) {
    return { search: { scmHost: search.host, repoSearchString: search.query, maxTotal: maxTotal ?? 0 } };
  }
  if (context.context.case === "fromTrigger") return {};
  const projectNames = await findProjectNames(snapshot, caller, context);
  const found = actionSources({ context, trigger: { case: undefined } }, { projectNames, cloneUrls: [] });
  const sources = found.slice(0, maxTotal ?? found.length).map(({ name, context: code }) => ({
    name,
    ...(code && { context: code }),
  }));
  return { sources, leftOutCount: found.length - sources.length };
}

function instantsOfTriggers({ spec }: Workflow, now: number) {
  return (spec?.triggers ?? []).flatMap(({ trigger }, index) =>
    trigger.case === "time" ? [instantsOf(trigger.value, index, now)] : [],
  );
}

function instantsOf(schedule: Schedule, triggerIndex: number, now: number) {
  const instants = upcomingInstants(schedule, now).map((ms) => timestampFromMs(ms));
  return create(Workflow_NextInstantsSchema, { triggerIndex, instants });
}
