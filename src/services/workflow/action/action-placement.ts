import { ProjectPhase } from "#gen/service/v1/project_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findProject } from "../../../store/project/project.ts";
import { findEnvironmentClass } from "../../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../../store/runner/runner.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";

/** The runner, or the environment class whose runners may lease an action; null for any runner. */
export interface ActionPlacement {
  readonly runnerId: string | null;
  readonly environmentClassId: string | null;
}

const ANY_RUNNER: ActionPlacement = { runnerId: null, environmentClassId: null };

/**
 * Returns the placement of an action: for a project the first of its classes that accepts environments, for a
 * repository the class of its context.
 *
 * @returns an error when no runner could ever lease the action
 */
export async function resolveActionPlacement(
  tx: WriteTransaction,
  scope: Scope,
  { spec }: WorkflowExecutionAction,
): Promise<ActionPlacement | { readonly error: WorkflowError }> {
  const context = spec?.context?.context;
  switch (context?.case) {
    case "projectId":
      return placementInProject(tx, scope, context.value);
    case "contextUrl":
      return placementInClass(tx, scope, context.value.environmentClassId);
    default:
      return ANY_RUNNER;
  }
}

async function placementInProject(tx: WriteTransaction, scope: Scope, projectId: string) {
  const meta = { project_id: projectId };
  const project = await findProject(tx.db, scope, projectId);
  if (!project || project.desiredPhase === ProjectPhase.DELETED) {
    return { error: workflowError("project_missing", "the project was deleted", meta) };
  }
  if (project.environmentClasses.length === 0) return ANY_RUNNER;
  for (const { environmentClass } of project.environmentClasses) {
    if (environmentClass.case === "localRunner") {
      const { effective } = await findPolicies(tx.db, scope);
      if (!effective.allowLocalRunners) continue;
      return { runnerId: await findLocalRunnerId(tx.db, scope), environmentClassId: null };
    }
    if (await acceptsEnvironments(tx, scope, environmentClass.value ?? "")) {
      return { runnerId: null, environmentClassId: environmentClass.value ?? "" };
    }
  }
  const message =
    "none of the project's environment classes takes environments: enable one, or change the project";
  return { error: workflowError("environment_class_unusable", message, meta) };
}

async function placementInClass(tx: WriteTransaction, scope: Scope, environmentClassId: string) {
  if (environmentClassId === "") return ANY_RUNNER;
  if (await acceptsEnvironments(tx, scope, environmentClassId)) return { runnerId: null, environmentClassId };
  const message = "the environment class is disabled or gone: enable it, or choose another";
  const meta = { environment_class_id: environmentClassId };
  return { error: workflowError("environment_class_unusable", message, meta) };
}

async function acceptsEnvironments(tx: WriteTransaction, scope: Scope, classId: string): Promise<boolean> {
  return (await findEnvironmentClass(tx.db, scope, classId))?.enabled ?? false;
}
