import type { Policies } from "#gen/runner/v1/work_pb.js";
import {
  neededByPolicies,
  type PolicySet,
  policiesWithout,
  policyNames,
  waitMessage,
} from "../../domain/runner/kept-policies.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findEnvironmentClass } from "../../store/runner/environment-class.ts";
import { endNeeds, type HeldWork, setNeeds, setWaiting } from "../../store/runner/held-work.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import { isConnected } from "../../store/runner/runner-life.ts";
import { API_AGENT_WITH_ENVIRONMENT, type StoredWork } from "../../store/runner/work.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import type { FindHandler } from "./work-handler.ts";

/**
 * Holds work for runners that support the policies it needs: other runners no longer find it. When no such runner is
 * connected, the wait begins and people are notified.
 */
export async function holdWork(
  tx: WriteTransaction,
  scope: Scope,
  work: StoredWork,
  needs: PolicySet,
  { handlerOf }: { readonly handlerOf: FindHandler },
): Promise<void> {
  await setNeeds(tx, scope, work, needs);
  const held = { ...work, needs, waiting_since: null };
  if (await isKeeperConnected(tx.db, scope, held)) return;
  await beginWait(tx, scope, held, handlerOf);
}

/** Offers held work to more runners when the policies of leases require less than before. */
export async function offerHeldWork(
  tx: WriteTransaction,
  scope: Scope,
  before: Policies,
  after: Policies,
): Promise<void> {
  const ended = policiesWithout(neededByPolicies(before), neededByPolicies(after));
  if (ended !== 0) await endNeeds(tx, scope, ended);
}

/** Begins to wait for a runner that supports what the work needs, and shows people why. */
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

/** Returns whether a connected runner may take the work and supports what it needs. */
export async function isKeeperConnected(
  db: Reader,
  scope: Scope,
  { kind, runner_id: boundTo, environment_class_id: classId, needs }: HeldWork,
): Promise<boolean> {
  const [localId, { effective }, environmentClass] = await Promise.all([
    findLocalRunnerId(db, scope),
    findPolicies(db, scope),
    classId === null ? undefined : findEnvironmentClass(db, scope, classId),
  ]);
  // Every local runner may take work for the local configuration.
  const isForLocal = boundTo === localId;
  const runnerIds = [
    ...(classId === null ? [] : [environmentClass?.runnerId ?? ""]),
    ...(boundTo === null || isForLocal ? [] : [boundTo]),
  ];
  const [runnerId = null] = runnerIds;
  if (runnerIds.some((each) => each !== runnerId)) return false;
  const mayBeLocal = effective.allowLocalRunners ? [1] : [];
  const local = isForLocal ? mayBeLocal : [0, ...mayBeLocal];
  const apiAgents = kind === API_AGENT_WITH_ENVIRONMENT;
  return local.length > 0 && isConnected(db, scope, { needs, runnerId, local, apiAgents });
}
