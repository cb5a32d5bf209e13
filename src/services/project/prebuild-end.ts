import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { Prebuild } from "../../domain/project/prebuild.ts";
import { findPrebuild, findPrebuilds, removePrebuild, updatePrebuild } from "../../store/project/prebuild.ts";
import { insertWork, stopWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** The workspace is ready; those that it takes the place of are removed at their runner. */
export async function finishPrebuild(tx: WriteTransaction, scope: Scope, before: Prebuild): Promise<void> {
  await updatePrebuild(tx, scope, before, { ...before, state: "ready", stopsAtMs: undefined });
  const { projectId, environmentClassId } = before;
  const filter = { projectId, environmentClassId, states: ["ready"] } as const;
  const [, ...older] = await findPrebuilds(tx.db, scope, filter);
  for (const each of older) await removeWorkspace(tx, scope, each, "");
}

/** The prebuild failed, and its runner has removed what there was of it. */
export async function failPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const after = { ...before, state: "failed", stopsAtMs: undefined, failure } as const;
  await updatePrebuild(tx, scope, before, after);
}

/** Has the runner of a prebuild remove what there may be of its workspace; the row goes when it has. */
export async function removeWorkspace(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const after = { ...before, state: "removing", stopsAtMs: undefined, failure } as const;
  await updatePrebuild(tx, scope, before, after);
  await insertWork(tx, {
    organizationId: scope.organizationId,
    kind: WorkKind.PREBUILD_REMOVAL,
    subjectId: before.id,
    groupId: before.projectId,
    // To clean up is done for nobody: it goes on when the executor's account is cut off.
    accountId: null,
    runnerId: before.runnerId,
    environmentClassId: null,
  });
}

/** Stops a prebuild whose time is over, whatever its runner does about it. */
export async function expirePrebuild(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  const before = await findPrebuild(tx.db, scope, id);
  if (before?.state !== "running") return;
  await stopPrebuild(tx, scope, before, "the prebuild took longer than its timeout");
}

/** Lets the prebuilds of a project go that is marked for removal: the project stays until they are gone. */
export async function releasePrebuilds(tx: WriteTransaction, scope: Scope, projectId: string): Promise<void> {
  for (const prebuild of await findPrebuilds(tx.db, scope, { projectId })) {
    if (prebuild.state === "ready") await removeWorkspace(tx, scope, prebuild, "");
    else if (prebuild.state === "running") {
      await stopPrebuild(tx, scope, prebuild, "the project is pending deletion");
    } else if (prebuild.state !== "removing") await removePrebuild(tx, scope, prebuild);
  }
}

/** The runner ends a prebuild that it is told to stop; where none is at it, what the last one left is removed. */
async function stopPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  failure: string,
): Promise<void> {
  const stopped = await stopWork(tx, WorkKind.PREBUILD, before.id);
  if (stopped !== "stopping") return removeWorkspace(tx, scope, before, failure);
  await updatePrebuild(tx, scope, before, { ...before, stopsAtMs: undefined, failure });
}
