import {
  offeredTo,
  type PolicySet,
  policiesWithout,
  policyNames,
  waitMessage,
} from "../../domain/runner/kept-policies.ts";
import { isLocalKind } from "../../domain/runner/runner.ts";
import { isAvailable } from "../../domain/runner/runner-heartbeat.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findEnvironmentClass } from "../../store/runner/environment-class.ts";
import { type HeldWork, setNeeds, setWaiting } from "../../store/runner/held-work.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import { findConnectedRunners } from "../../store/runner/runner-life.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import type { FindHandler } from "./work-handler.ts";

/**
 * Holds work for runners that keep what it needs: others do not find it any more. Where none that may take it is
 * connected, it waits from now on, and people are told.
 */
export async function holdWork(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  needs: PolicySet,
  { handlerOf }: { readonly handlerOf: FindHandler },
): Promise<void> {
  await setNeeds(tx, scope, work, needs);
  if (await isKeeperConnected(tx.db, scope, { ...work, needs })) return;
  await beginWait(tx, scope, { ...work, needs }, handlerOf);
}

/** Lets work wait for a runner that keeps what it needs, from now on, and tells people why. */
export async function beginWait(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  handlerOf: FindHandler,
): Promise<void> {
  const { id, kind, needs, waiting_since } = work;
  if (waiting_since === null) await setWaiting(tx, id, tx.now);
  const wait = { message: waitMessage(needs), policies: policyNames(needs) };
  await handlerOf(kind).warn?.(tx, scope, work, wait);
}

/** Returns whether a runner is connected that may take such work and keeps what it needs. */
export async function isKeeperConnected(
  db: Reader,
  scope: Scope,
  { runner_id: runnerId, environment_class_id: classId, needs }: HeldWork,
): Promise<boolean> {
  const connected = await findConnectedRunners(db, scope);
  const keepers = connected.filter(
    ({ runner, keptPolicies }) =>
      isAvailable(runner) && policiesWithout(needs, offeredTo(keptPolicies)) === 0,
  );
  if (keepers.length === 0) return false;
  const [localId, { effective }, environmentClass] = await Promise.all([
    findLocalRunnerId(db, scope),
    findPolicies(db, scope),
    classId === null ? undefined : findEnvironmentClass(db, scope, classId),
  ]);
  return keepers.some(({ runner, local }) => {
    const isLocal = local || isLocalKind(runner.kind);
    if (isLocal && !effective.allowLocalRunners) return false;
    if (classId !== null && environmentClass?.runnerId !== runner.runnerId) return false;
    return runnerId === null || runnerId === runner.runnerId || (isLocal && runnerId === localId);
  });
}
