import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import type { Runner } from "#gen/service/v1/runner_pb.js";
import { withoutClasses } from "../../domain/runner/environment-class.ts";
import { workflowError } from "../../domain/workflow/execution/workflow-error.ts";
import { findEnvironmentsOfRunner } from "../../store/environment/environment.ts";
import { findTokens, removeToken } from "../../store/identity/token.ts";
import { findPrebuilds, removePrebuild } from "../../store/project/prebuild.ts";
import { findWholeProject, updateProject } from "../../store/project/project.ts";
import { findProjectIdsOfRunner } from "../../store/project/runner-projects.ts";
import { findClassesOfRunner, removeEnvironmentClass } from "../../store/runner/environment-class.ts";
import { findHostTokensOfRunner, removeHostToken } from "../../store/runner/host-token.ts";
import { removeRunner } from "../../store/runner/runner.ts";
import { removeWork } from "../../store/runner/work.ts";
import { findWorkBoundTo, findWorkLeasedBy } from "../../store/runner/work-runner.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findAction } from "../../store/workflow/workflow-action.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { deleteEnvironmentRow } from "../environment/environment-change.ts";
import { queueElsewhere } from "../workflow/action/action-approval.ts";
import { finishAction } from "../workflow/action/action-progress.ts";
import { handlerOf } from "./work-handlers.ts";

/** Number of environments read per query. Other reads can run only between the queries of a transaction. */
const ENVIRONMENTS_PER_PAGE = 16;

/** The failure of agent executions that were routed to a removed runner. */
const RUNNER_REMOVED = {
  reason: AgentExecutionFailureReason.SERVICE,
  message: "the runner that it was routed to was deleted",
} as const;

/**
 * Removes a runner and everything that depends on it: its environments, the entries of projects for its classes, its
 * prebuilds, classes and tokens, and the host credentials stored for it. Work that it holds returns to the queue.
 * Work that only it could do fails, except actions that it would have continued after an approval. Agent executions
 * in its environments or routed to it fail too. Referring rows are removed before the rows that they refer to.
 */
export async function removeRunnerWithDependents(
  tx: WriteTransaction,
  scope: Scope,
  runner: Runner,
): Promise<void> {
  const { runnerId } = runner;
  await deleteEnvironmentsOfRunner(tx, scope, runnerId);
  await haltAgentExecutions(tx, scope, { runnerId }, { failure: RUNNER_REMOVED });
  const classes = await findClassesOfRunner(tx.db, scope, runnerId);
  const classIds = classes.map(({ id }) => id);
  for (const projectId of await findProjectIdsOfRunner(tx.db, scope, runnerId, classIds)) {
    const project = await findWholeProject(tx.db, scope, projectId);
    if (project) {
      await updateProject(tx, scope, project, withoutClasses(project, new Set(classIds), tx.now));
    }
  }
  for (const prebuild of await findPrebuilds(tx.db, scope, { runnerId })) {
    await removePrebuild(tx, scope, prebuild);
  }
  for (const environmentClass of classes) await removeEnvironmentClass(tx, scope, environmentClass);
  await failWorkOfRunner(tx, scope, runnerId, classIds);
  for (const kind of ["exchange", "runner"] as const) {
    for (const token of await findTokens(tx.db, scope, kind, runnerId)) await removeToken(tx, scope, token);
  }
  for (const token of await findHostTokensOfRunner(tx.db, scope, runnerId)) {
    await removeHostToken(tx, scope, token);
  }
  await removeRunner(tx, scope, runner);
}

/**
 * Deletes environments of a runner, oldest first, and ends the runner's leases.
 *
 * @param maxMs time limit in milliseconds; none by default
 * @returns true when no environment is left
 */
export async function deleteEnvironmentsOfRunner(
  tx: WriteTransaction,
  scope: Scope,
  runnerId: string,
  maxMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const began = performance.now();
  await endLeasesOfRunner(tx, scope, runnerId);
  do {
    const environments = await findEnvironmentsOfRunner(tx.db, scope, runnerId, ENVIRONMENTS_PER_PAGE);
    for (const environment of environments) await deleteEnvironmentRow(tx, scope, environment);
    if (environments.length < ENVIRONMENTS_PER_PAGE) return true;
  } while (performance.now() - began < maxMs);
  return false;
}

/** Ends the leases of a runner as lost, so that other runners can get the work. */
async function endLeasesOfRunner(tx: WriteTransaction, scope: Scope, runnerId: string): Promise<void> {
  for (const lease of await findWorkLeasedBy(tx.db, scope, runnerId)) {
    await handlerOf(lease.kind).end(tx, scope, lease, { kind: "lost" });
  }
}

/**
 * Fails the work that is bound to a runner or to one of its classes. The environments and classes must already be
 * removed, so that no new work is queued for them.
 */
async function failWorkOfRunner(
  tx: WriteTransaction,
  scope: Scope,
  runnerId: string,
  classIds: readonly string[],
): Promise<void> {
  for (const work of await findWorkBoundTo(tx.db, scope, runnerId, classIds)) {
    await removeWork(tx, work.id);
    if (work.kind !== WorkKind.ACTION || (await queueElsewhere(tx, scope, work))) continue;
    const error = workflowError("runner_removed", "the runner that could have taken the action was deleted");
    const action = await findAction(tx.db, scope, work.subject_id);
    await finishAction(tx, scope, action, { kind: "failed", error }, []);
  }
}
