import { create } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { EnvironmentClass } from "#gen/service/v1/runner_configuration_pb.js";
import { DomainError } from "../../domain/error.ts";
import type { Prebuild } from "../../domain/project/prebuild.ts";
import { requireClassEnabled } from "../../domain/runner/environment-class.ts";
import { findPrebuilds, insertPrebuild, removePrebuild } from "../../store/project/prebuild.ts";
import { findEnvironmentClasses } from "../../store/runner/environment-class.ts";
import { insertWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { findAccountOfExecutor, getExecutorAsCaller } from "../identity/executor.ts";

/**
 * Creates the prebuilds of a project that are due at an instant, one for each of its
 * classes, and queues them. One that cannot be prepared is stored as failed, so that
 * the audit log has the reason.
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

async function planPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  project: Project,
  environmentClass: EnvironmentClass,
  instantMs: number,
): Promise<void> {
  const executor = project.prebuildConfiguration?.executor ?? create(SubjectSchema);
  const failure = await findPrebuildFailure(tx, scope, { executor, environmentClass });
  const prebuild: Prebuild = {
    id: tx.newId(),
    projectId: project.id,
    environmentClassId: environmentClass.id,
    runnerId: environmentClass.runnerId,
    executor,
    instantMs,
    state: failure === "" ? "waiting" : "failed",
    failure,
  };
  await removeSuperseded(tx, scope, prebuild);
  if (!(await insertPrebuild(tx, scope, prebuild)) || failure !== "") return;
  await insertWork(tx, scope, {
    kind: WorkKind.PREBUILD,
    subjectId: prebuild.id,
    groupId: project.id,
    accountId: await findAccountOfExecutor(tx, scope, executor),
    runnerId: prebuild.runnerId,
    environmentClassId: environmentClass.id,
  });
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

/** Removes the prebuilds of earlier days that no runner has begun or that left no workspace. */
async function removeSuperseded(tx: WriteTransaction, scope: Scope, newest: Prebuild): Promise<void> {
  const { projectId, environmentClassId, instantMs } = newest;
  const filter = { projectId, environmentClassId, states: ["waiting", "failed"] } as const;
  for (const prebuild of await findPrebuilds(tx.db, scope, filter)) {
    if (prebuild.instantMs < instantMs) {
      await removePrebuild(tx, scope, prebuild, "overtaken by the prebuild of a later day");
    }
  }
}
