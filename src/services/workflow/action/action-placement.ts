import { ProjectPhase } from "#gen/service/v1/project_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findProject } from "../../../store/project/project.ts";
import { findEnvironmentClass } from "../../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../../store/runner/runner.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";

/** Which runner, or the runners of which class, can take an action on; null where any can. */
export interface ActionPlacement {
  readonly runnerId: string | null;
  readonly environmentClassId: string | null;
}

const ANYWHERE: ActionPlacement = { runnerId: null, environmentClassId: null };

/**
 * Returns the runners that can carry out an action: for a project by the first of its classes
 * that takes environments, for a repository in the class of the context.
 *
 * @returns why nobody could take it, where nobody could: it would wait forever
 */
export async function resolveEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  { spec }: WorkflowExecutionAction,
): Promise<ActionPlacement | { readonly error: WorkflowError }> {
  const context = spec?.context?.context;
  switch (context?.case) {
    case "projectId":
      return placeOfProject(tx, scope, context.value);
    case "contextUrl":
      return placeOfClass(tx, scope, context.value.environmentClassId);
    default:
      return ANYWHERE;
  }
}

async function placeOfProject(tx: WriteTransaction, scope: Scope, projectId: string) {
  const meta = { project_id: projectId };
  const project = await findProject(tx.db, scope, projectId);
  if (!project || project.desiredPhase === ProjectPhase.DELETED) {
    return { error: workflowError("project_missing", "the project was deleted", meta) };
  }
  if (project.environmentClasses.length === 0) return ANYWHERE;
  for (const { environmentClass } of project.environmentClasses) {
    if (environmentClass.case === "localRunner") {
      const { inForce } = await findPolicies(tx.db, scope);
      if (!inForce.allowLocalRunners) continue;
      return { runnerId: await findLocalRunnerId(tx.db, scope), environmentClassId: null };
    }
    if (await takesEnvironments(tx, scope, environmentClass.value ?? "")) {
      return { runnerId: null, environmentClassId: environmentClass.value ?? "" };
    }
  }
  const message =
    "none of the project's environment classes takes environments: enable one, or change the project";
  return { error: workflowError("environment_class_unusable", message, meta) };
}

async function placeOfClass(tx: WriteTransaction, scope: Scope, environmentClassId: string) {
  if (environmentClassId === "") return ANYWHERE;
  if (await takesEnvironments(tx, scope, environmentClassId)) return { runnerId: null, environmentClassId };
  const message = "the environment class is disabled or gone: enable it, or choose another";
  const meta = { environment_class_id: environmentClassId };
  return { error: workflowError("environment_class_unusable", message, meta) };
}

async function takesEnvironments(tx: WriteTransaction, scope: Scope, classId: string): Promise<boolean> {
  return (await findEnvironmentClass(tx.db, scope, classId))?.enabled ?? false;
}
