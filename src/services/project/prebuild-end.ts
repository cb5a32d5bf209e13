import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { Prebuild } from "../../domain/project/prebuild.ts";
import { findPrebuild, findPrebuilds, removePrebuild, updatePrebuild } from "../../store/project/prebuild.ts";
import { insertWork, stopWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** Marks a prebuild as ready, and has the runner remove the workspaces of the ones that it replaces. */
export async function finishPrebuild(tx: WriteTransaction, scope: Scope, before: Prebuild): Promise<void> {
  await updatePrebuild(tx, scope, before, { ...before, state: "ready", stopsAtMs: undefined });
  const { projectId, environmentClassId } = before;
  const filter = { projectId, environmentClassId, states: ["ready"] } as const;
  const [, ...older] = await findPrebuilds(tx.db, scope, filter);
  for (const each of older) await queueWorkspaceRemoval(tx, scope, each, "");
}

/** Marks a prebuild as failed, whose runner has removed the workspace. */
export async function failPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const after = { ...before, state: "failed", stopsAtMs: undefined, failure } as const;
  await updatePrebuild(tx, scope, before, after);
}

/** Queues the removal of a prebuild's workspace at its runner. The row is removed after that. */
export async function queueWorkspaceRemoval(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const after = { ...before, state: "removing", stopsAtMs: undefined, failure } as const;
  await updatePrebuild(tx, scope, before, after);
  await insertWork(tx, scope, {
    kind: WorkKind.PREBUILD_REMOVAL,
    subjectId: before.id,
    groupId: before.projectId,
    // Cleanup belongs to no account: it continues when the executor's account is blocked.
    accountId: null,
    runnerId: before.runnerId,
    environmentClassId: null,
  });
}

/** Stops a prebuild that has reached its timeout, without waiting for its runner. */
export async function expirePrebuild(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  const before = await findPrebuild(tx.db, scope, id);
  if (before?.state !== "running") return;
  await stopPrebuild(tx, scope, before, "the prebuild took longer than its timeout");
}

/** Removes the prebuilds of a project that is marked for removal. The project stays until they are removed. */
export async function releasePrebuilds(tx: WriteTransaction, scope: Scope, projectId: string): Promise<void> {
  for (const prebuild of await findPrebuilds(tx.db, scope, { projectId })) {
    if (prebuild.state === "ready") await queueWorkspaceRemoval(tx, scope, prebuild, "");
    else if (prebuild.state === "running") {
      await stopPrebuild(tx, scope, prebuild, "the project is pending deletion");
    } else if (prebuild.state !== "removing") await removePrebuild(tx, scope, prebuild);
  }
}

/** Stops a prebuild. A leased one is ended by its runner; otherwise the workspace of the last attempt is removed. */
async function stopPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const stopped = await stopWork(tx, scope, WorkKind.PREBUILD, before.id);
  if (stopped !== "stopping") return queueWorkspaceRemoval(tx, scope, before, failure);
  await updatePrebuild(tx, scope, before, { ...before, stopsAtMs: undefined, failure });
}
