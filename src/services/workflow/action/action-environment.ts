import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { assignedEnvironment, orphanedEnvironment } from "../../../domain/environment/environment-phase.ts";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { Policies } from "../../../domain/policy/policies.ts";
import { uniqueSubjects } from "../../../domain/source/source-trust.ts";
import {
  environmentNameOf,
  isBegunByFork,
  specOfAction,
} from "../../../domain/workflow/execution/action-environment.ts";
import { findEnvironment, insertEnvironment } from "../../../store/environment/environment.ts";
import { findSourceSetters, insertSourceSetters } from "../../../store/identity/source-setter.ts";
import { findProject } from "../../../store/project/project.ts";
import { insertProjectUse } from "../../../store/project/project-use.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { changeEnvironment, findEnvironmentRemoval } from "../../environment/environment-change.ts";
import { newEnvironmentUnderPolicies } from "../../environment/environment-policy.ts";
import { checkEnvironmentReferences } from "../../environment/environment-references.ts";
import type { ActionPeople } from "./action-ahead.ts";
import type { ReportedAction } from "./action-report.ts";

/** A request for the environment of an action that a runner leases. */
export interface ActionEnvironmentRequest {
  readonly action: WorkflowExecutionAction;
  readonly execution: WorkflowExecution;
  readonly runnerId: string;
  /** Id of the environment class that the action was queued for; null for none. */
  readonly environmentClassId: string | null;
  /** The policies of the organization. */
  readonly policies: Policies;
}

/** The environment of one attempt at an action. */
export interface ActionEnvironment {
  readonly environment: Environment;
  /** The setters of its source: the current ones of its project, and those of its execution's context. */
  readonly sourceSetBy: readonly Subject[];
}

/**
 * Returns a new environment for an attempt at an action, as its executor would create it now. It is not inserted. A
 * report action is exempt from the policies on how members create environments, since the service itself needs its
 * workspace.
 *
 * @param people the subjects of its execution, which may act
 * @throws DomainError when the executor may not create it: POLICY_DENIED, NOT_FOUND for its project or class,
 * PHASE_UNSUITABLE for a class that was disabled, PENDING_DELETION for the project
 */
export async function newActionEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  { action, execution, runnerId, environmentClassId, policies }: ActionEnvironmentRequest,
  { executor, contextSetters }: ActionPeople,
): Promise<ActionEnvironment> {
  const context = action.spec?.context?.context;
  const projectId = context?.case === "projectId" ? context.value : "";
  const project = projectId === "" ? undefined : await findProject(tx.db, scope, projectId);
  const creator: Caller = action.metadata?.report ? { ...executor, role: "administrator" } : executor;
  if (projectId !== "" && !project) throw notFound("project");
  const spec = specOfAction({ execution, action, project, environmentClassId });
  await checkEnvironmentReferences(tx.db, scope, spec);
  const name = environmentNameOf(action);
  const template = { spec, name, annotations: {}, sessionId: "", projectId, runnerId };
  const made = await newEnvironmentUnderPolicies(tx, creator, template, policies);
  const environment = assignedEnvironment(made, runnerId);
  if (environment.spec) environment.spec.workflowActionId = action.id;
  if (environment.metadata) {
    environment.metadata.secretsWithheld = isBegunByFork(execution);
    const { egress } = execution.spec?.trigger?.forkWork ?? {};
    if (egress !== undefined) environment.metadata.forkEgress = egress;
  }
  const projectSetters = project ? await findSourceSetters(tx.db, scope, "project", project) : [];
  return { environment, sourceSetBy: uniqueSubjects(contextSetters, projectSetters) };
}

/** Inserts the environment of an attempt, with the setters of its source. */
export async function insertActionEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  { environment, sourceSetBy }: ActionEnvironment,
): Promise<void> {
  await insertEnvironment(tx, scope, environment);
  await insertSourceSetters(tx, scope, "environment", environment, sourceSetBy);
  const { projectId, creator } = environment.metadata ?? {};
  if (projectId && creator) await insertProjectUse(tx, scope, projectId, creator, environment.id);
}

/**
 * Finds the rows to remove with the environment of an action that its runner has released and that ends in this
 * write.
 *
 * @param known what a report in this transaction found
 * @returns the function that removes it
 */
export async function findActionEnvironmentRemoval(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
  known?: Pick<ReportedAction, "environment" | "environmentHasAgents">,
): Promise<() => Promise<void>> {
  const environment = known?.environment ?? (await findEnvironment(tx.db, scope, environmentId));
  if (!environment) return async () => {};
  return findEnvironmentRemoval(tx, scope, environment, {
    endsAction: true,
    hasAgents: known?.environmentHasAgents ?? true,
  });
}

/** Marks the environment of a lost attempt as orphaned. Its runner cleans it up once it reconnects. */
export async function releaseActionEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<void> {
  const before = await findEnvironment(tx.db, scope, environmentId);
  if (before) await changeEnvironment(tx, scope, before, orphanedEnvironment(before));
}
