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
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { deleteEnvironmentRow } from "../environment/environment-change.ts";
import { finishAction } from "../workflow/action/action-progress.ts";
import { handlerOf } from "./work-handlers.ts";

/** Environments read at a time: a write pauses only between its queries. */
const ENVIRONMENTS_AT_ONCE = 16;

/** Why the agent runs that were routed to a removed runner end. */
const REMOVED = {
  reason: AgentExecutionFailureReason.SERVICE,
  message: "the runner that it was routed to was deleted",
} as const;

/**
 * Removes a runner with all that hangs on it: its environments, the entries of
 * projects for its classes, its prebuilds, the classes, its tokens, and the
 * credentials stored for it. Work that it holds may go to others, work that only
 * it could do has failed, and so have the agent runs in its environments or
 * routed to it. What refers goes before what it refers to.
 */
export async function removeRunnerWhole(tx: WriteTransaction, scope: Scope, runner: Runner): Promise<void> {
  const { runnerId } = runner;
  await deleteEnvironmentsOf(tx, scope, runnerId);
  await haltAgentExecutions(tx, scope, { runnerId }, { failure: REMOVED });
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
  await endWorkFor(tx, scope, runnerId, classIds);
  for (const kind of ["exchange", "runner"] as const) {
    for (const token of await findTokens(tx.db, scope, kind, runnerId)) await removeToken(tx, scope, token);
  }
  for (const token of await findHostTokensOfRunner(tx.db, scope, runnerId)) {
    await removeHostToken(tx, scope, token);
  }
  await removeRunner(tx, scope, runner);
}

/**
 * Deletes environments of a runner, oldest first, and ends the leases that the runner holds.
 *
 * @param forMs time after which it stops, in milliseconds
 * @returns whether none is left
 */
export async function deleteEnvironmentsOf(
  tx: WriteTransaction,
  scope: Scope,
  runnerId: string,
  forMs = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const began = performance.now();
  await endLeasesOf(tx, scope, runnerId);
  do {
    const environments = await findEnvironmentsOfRunner(tx.db, scope, runnerId, ENVIRONMENTS_AT_ONCE);
    for (const environment of environments) await deleteEnvironmentRow(tx, scope, environment);
    if (environments.length < ENVIRONMENTS_AT_ONCE) return true;
  } while (performance.now() - began < forMs);
  return false;
}

/** Ends the leases that a runner holds as if it had been lost: others may get the work. */
async function endLeasesOf(tx: WriteTransaction, scope: Scope, runnerId: string): Promise<void> {
  for (const lease of await findWorkLeasedBy(tx.db, scope, runnerId)) {
    await handlerOf(lease.kind).end(tx, scope, lease, { kind: "lost" });
  }
}

/**
 * Ends the work that only a runner could have done, bound to it or for a class
 * of it. Its environments and classes must be gone already, so that nothing new
 * is queued for them.
 */
async function endWorkFor(
  tx: WriteTransaction,
  scope: Scope,
  runnerId: string,
  classIds: readonly string[],
): Promise<void> {
  for (const work of await findWorkBoundTo(tx.db, scope, runnerId, classIds)) {
    await removeWork(tx, work.id);
    if (work.kind !== WorkKind.ACTION) continue;
    const error = workflowError("runner_removed", "the runner that could have taken the action was deleted");
    await finishAction(tx, scope, work.subject_id, { kind: "failed", error }, []);
  }
}
