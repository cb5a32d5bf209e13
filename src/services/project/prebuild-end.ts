import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { type EndingState, isEnding, type Prebuild } from "../../domain/project/prebuild.ts";
import { mayStore, PREBUILD_SERVICE_LEVEL } from "../../store/feature-level.ts";
import { findPrebuild, findPrebuilds, removePrebuild, updatePrebuild } from "../../store/project/prebuild.ts";
import { insertWork, stopWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** How a prebuild ends: the intermediate state, and the failure. */
export interface PrebuildEnding {
  readonly state: EndingState;
  /** Defaults to the failure of the prebuild. */
  readonly failure?: string;
}

/** Marks a prebuild as ready and queues the removal of the workspaces that it replaces. */
export async function finishPrebuild(tx: WriteTransaction, scope: Scope, before: Prebuild): Promise<void> {
  await updatePrebuild(tx, scope, before, {
    ...before,
    state: "ready",
    stopsAtMs: undefined,
    endedAtMs: tx.now,
  });
  const { projectId, environmentClassId } = before;
  const filter = { projectId, environmentClassId, states: ["ready"] } as const;
  const [, ...older] = await findPrebuilds(tx.db, scope, filter);
  for (const each of older) await queueWorkspaceRemoval(tx, scope, each, { state: "removing" });
}

/**
 * Ends a prebuild that has no workspace at a runner. Stores the final state, or removes the row when the state is
 * `removing`.
 * @returns the prebuild afterwards; undefined when the row was removed
 */
export async function endWithoutWorkspace(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  { state, failure = before.failure }: PrebuildEnding,
  warning = "",
): Promise<Prebuild | undefined> {
  if (state === "removing") {
    await removePrebuild(tx, scope, before, warning || (failure === before.failure ? "" : failure));
    return undefined;
  }
  const ended = { stopsAtMs: undefined, endedAtMs: tx.now, failure, warning };
  return updatePrebuild(tx, scope, before, {
    ...before,
    ...ended,
    state: state === "failing" ? "failed" : "cancelled",
  });
}

/** Queues the removal of a prebuild's workspace at its runner. The prebuild ends once it is removed. */
export async function queueWorkspaceRemoval(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  ending: PrebuildEnding,
): Promise<Prebuild> {
  const after = await updateEnding(tx, scope, before, ending);
  await insertWork(tx, scope, {
    kind: WorkKind.PREBUILD_REMOVAL,
    subjectId: before.id,
    groupId: before.projectId,
    // Cleanup belongs to no account: it continues even when the executor's account is blocked.
    accountId: null,
    runnerId: before.runnerId,
    environmentClassId: null,
  });
  return after;
}

/** Stops a prebuild that has reached its timeout, without waiting for its runner. */
export async function expirePrebuild(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  const before = await findPrebuild(tx.db, scope, id);
  if (before?.state !== "running") return;
  await endPrebuild(tx, scope, before, {
    state: "failing",
    failure: "the prebuild took longer than its timeout",
  });
}

/** Removes the prebuilds of a project that is marked for removal. The project remains until they are removed. */
export async function releasePrebuilds(tx: WriteTransaction, scope: Scope, projectId: string): Promise<void> {
  for (const prebuild of await findPrebuilds(tx.db, scope, { projectId })) {
    const isAtWork = prebuild.state === "running";
    const reason = isAtWork ? { failure: "the project is pending deletion" } : {};
    await endPrebuild(tx, scope, prebuild, { state: "removing", ...reason });
  }
}

/**
 * Ends a prebuild in any state. The runner ends a leased one. Otherwise the workspace is removed, or the row
 * immediately when there is no workspace.
 * @returns the prebuild afterwards; undefined when the row was removed
 */
export async function endPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  ending: PrebuildEnding,
): Promise<Prebuild | undefined> {
  const { state } = before;
  // The runner already knows, or the removal is already queued.
  if (isEnding(state)) return updateEnding(tx, scope, before, ending);
  if (state === "failed" || state === "cancelled") return endRecord(tx, scope, before, ending);
  if (state === "ready") return queueWorkspaceRemoval(tx, scope, before, ending);
  const stopped = await stopWork(tx, scope, WorkKind.PREBUILD, before.id);
  if (stopped === "stopping") return updateEnding(tx, scope, before, ending);
  if (state === "waiting") return endWithoutWorkspace(tx, scope, before, ending);
  return queueWorkspaceRemoval(tx, scope, before, ending);
}

/**
 * Ends the record of a failed or cancelled prebuild. If its runner could not remove the workspace, it tries once
 * more.
 */
function endRecord(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  ending: PrebuildEnding,
): Promise<Prebuild | undefined> {
  if (before.warning !== "") return queueWorkspaceRemoval(tx, scope, before, ending);
  return endWithoutWorkspace(tx, scope, before, ending);
}

function updateEnding(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  { state: wanted, failure = before.failure }: PrebuildEnding,
): Promise<Prebuild> {
  // Servers of the previous release know only `removing`, after which the row is removed.
  const state = mayStore(tx, PREBUILD_SERVICE_LEVEL) ? wanted : "removing";
  return updatePrebuild(tx, scope, before, { ...before, state, stopsAtMs: undefined, failure });
}
