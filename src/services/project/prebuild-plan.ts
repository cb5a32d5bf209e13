import { create } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { CreatePrebuildRequest } from "#gen/service/v1/prebuild_service_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { EnvironmentClass } from "#gen/service/v1/runner_configuration_pb.js";
import { DomainError, notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Prebuild, prebuildTimeoutMs } from "../../domain/project/prebuild.ts";
import { plannedPrebuild, requireNoneUnfinished } from "../../domain/project/prebuild-request.ts";
import { requireClassEnabled } from "../../domain/runner/environment-class.ts";
import { findPrebuilds, insertPrebuild, removePrebuild } from "../../store/project/prebuild.ts";
import { findEnvironmentClass, findEnvironmentClasses } from "../../store/runner/environment-class.ts";
import { insertWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findAccountOfExecutor, getExecutorAsCaller } from "../identity/executor.ts";
import { queueWorkspaceRemoval } from "./prebuild-end.ts";

/**
 * Creates and queues the prebuilds of a project that are due at an instant, one per class. A prebuild that cannot be
 * prepared is stored as failed, to put the reason into the audit log. A class gets none while a requested prebuild
 * waits or runs, which would otherwise be removed or made twice.
 */
export async function planPrebuilds(
  tx: WriteTransaction,
  scope: Scope,
  project: Project,
  instantMs: number,
): Promise<void> {
  const classIds = project.prebuildConfiguration?.environmentClassIds ?? [];
  for (const environmentClass of await findEnvironmentClasses(tx.db, scope, classIds)) {
    await planPrebuild(tx, scope, project, environmentClass, instantMs);
  }
}

/**
 * Creates and queues a prebuild of a project that the caller asks for.
 *
 * @throws DomainError as {@link plannedPrebuild} and {@link requireNoneUnfinished}; NOT_FOUND for a class;
 * PHASE_UNSUITABLE for a disabled class; EXECUTOR_UNFIT for an executor that cannot act
 */
export async function startPrebuild(
  tx: WriteTransaction,
  caller: Caller,
  project: Project,
  req: CreatePrebuildRequest,
): Promise<Prebuild> {
  const { environmentClassId: named } = req;
  if (named !== undefined) await getClass(tx, caller, named);
  const { environmentClassId, timeoutMs } = plannedPrebuild(project, req);
  const environmentClass = await getClass(tx, caller, environmentClassId);
  requireClassEnabled(environmentClass);
  await getExecutorAsCaller(tx, caller, executorOf(project));
  const others = await findPrebuilds(tx.db, caller, { projectId: project.id, environmentClassId });
  requireNoneUnfinished(others);
  const instantMs = Math.max(tx.now, (others[0]?.instantMs ?? 0) + 1);
  const planned = newPrebuild(tx, project, environmentClass, {
    instantMs,
    timeoutMs,
    creator: caller.subject,
  });
  await removeSuperseded(tx, caller, planned);
  await queuePrebuild(tx, caller, planned);
  return planned;
}

/** Returns a class of the organization. @throws DomainError NOT_FOUND */
async function getClass(tx: WriteTransaction, scope: Scope, id: string): Promise<EnvironmentClass> {
  const found = await findEnvironmentClass(tx.db, scope, id);
  if (!found) throw notFound("environment class");
  return found;
}

async function planPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  project: Project,
  environmentClass: EnvironmentClass,
  instantMs: number,
): Promise<void> {
  const filter = { projectId: project.id, environmentClassId: environmentClass.id } as const;
  const unfinished = await findPrebuilds(tx.db, scope, { ...filter, states: ["waiting", "running"] });
  if (unfinished.some(({ creator }) => creator)) return;
  const failure = await findPrebuildFailure(tx, scope, { executor: executorOf(project), environmentClass });
  const timeoutMs = prebuildTimeoutMs(project);
  const planned = newPrebuild(tx, project, environmentClass, { instantMs, timeoutMs });
  await removeSuperseded(tx, scope, planned);
  if (failure === "") await queuePrebuild(tx, scope, planned);
  else await insertPrebuild(tx, scope, { ...planned, state: "failed", failure, endedAtMs: tx.now });
}

function newPrebuild(
  tx: WriteTransaction,
  project: Project,
  environmentClass: EnvironmentClass,
  planned: Pick<Prebuild, "instantMs" | "timeoutMs" | "creator">,
): Prebuild {
  return {
    id: tx.newId(),
    projectId: project.id,
    environmentClassId: environmentClass.id,
    runnerId: environmentClass.runnerId,
    executor: executorOf(project),
    createdAtMs: tx.now,
    updatedAtMs: tx.now,
    changes: 0,
    state: "waiting",
    failure: "",
    warning: "",
    ...planned,
  };
}

/** Adds a prebuild and its work, unless its project and class already have one for the same instant. */
async function queuePrebuild(tx: WriteTransaction, scope: Scope, prebuild: Prebuild): Promise<void> {
  if (!(await insertPrebuild(tx, scope, prebuild))) return;
  await insertWork(tx, scope, {
    kind: WorkKind.PREBUILD,
    subjectId: prebuild.id,
    groupId: prebuild.projectId,
    accountId: await findAccountOfExecutor(tx, scope, prebuild.executor),
    runnerId: prebuild.runnerId,
    environmentClassId: prebuild.environmentClassId,
  });
}

function executorOf({ prebuildConfiguration }: Project): Subject {
  return prebuildConfiguration?.executor ?? create(SubjectSchema);
}

/** Returns the reason why the workspace cannot be prepared; empty when it can. */
export async function findPrebuildFailure(
  tx: WriteTransaction,
  scope: Scope,
  {
    executor,
    environmentClass,
  }: Pick<Prebuild, "executor"> & { readonly environmentClass: EnvironmentClass },
): Promise<string> {
  try {
    await getExecutorAsCaller(tx, scope, executor);
    requireClassEnabled(environmentClass);
    return "";
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
}

/** Ends the earlier prebuilds that no runner has begun, and removes the records of failed and cancelled ones. */
async function removeSuperseded(tx: WriteTransaction, scope: Scope, newest: Prebuild): Promise<void> {
  const { projectId, environmentClassId, instantMs } = newest;
  const filter = { projectId, environmentClassId, states: ["waiting", "failed", "cancelled"] } as const;
  for (const prebuild of await findPrebuilds(tx.db, scope, filter)) {
    if (prebuild.instantMs >= instantMs) continue;
    if (prebuild.warning === "") await removePrebuild(tx, scope, prebuild, "overtaken by a later prebuild");
    else await queueWorkspaceRemoval(tx, scope, prebuild, { state: "removing" });
  }
}
