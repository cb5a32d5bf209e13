import type { Kysely } from "kysely";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { needsWork } from "../../domain/environment/environment-phase.ts";
import { findTokens, removeToken } from "../identity/token.ts";
import { prepared } from "../prepared.ts";
import { findWork, insertWork, removeWork, stopHolder, stopWork } from "../runner/work.ts";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

/**
 * Gives the queue what a runner has to do for the environment to come to what is
 * wanted of it, if anything. There must be no open work on it.
 */
export async function queueEnvironmentWork(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  if (!needsWork(environment)) return;
  const { id, metadata, spec } = environment;
  const creatorId = metadata?.creator?.id ?? "";
  // To stop and to clean up is done for nobody: it must go on when the creator's account is cut off.
  const isForCreator = spec?.desiredPhase === EnvironmentPhase.RUNNING;
  await insertWork(tx, {
    organizationId: scope.organizationId,
    kind: WorkKind.ENVIRONMENT,
    subjectId: id,
    groupId: creatorId,
    accountId: isForCreator ? await findAccountId(tx.db, scope, creatorId) : null,
    runnerId: metadata?.runnerId || null,
    environmentClassId: spec?.machine?.class || null,
  });
}

/**
 * Keeps the queue in step when something else is wanted of an environment than
 * before. A runner that is at it is told to stop; what is to be done then is
 * queued when it has. An action is told to stop with its environment.
 */
export async function syncEnvironmentWork(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
): Promise<void> {
  if (before.spec?.desiredPhase === after.spec?.desiredPhase) return;
  if (after.spec?.desiredPhase !== EnvironmentPhase.RUNNING) await stopActionOf(tx, after);
  if ((await stopWork(tx, WorkKind.ENVIRONMENT, after.id)) === "stopping") return;
  await queueEnvironmentWork(tx, scope, after);
}

/** Removes what is there for an environment only: its work, and the tokens that act as it. */
export async function removeEnvironmentBelongings(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
): Promise<void> {
  const { id } = environment;
  await stopActionOf(tx, environment);
  const work = await findWork(tx.db, WorkKind.ENVIRONMENT, id);
  if (work) await removeWork(tx, work.id);
  for (const token of await findTokens(tx.db, scope, "environment", id)) await removeToken(tx, scope, token);
}

const selectActionIn = prepared<{ id: string; environmentId: string }, { id: string }>(
  (db, { id, environmentId }) =>
    db
      .selectFrom("workflow_action")
      .select("id")
      .where("id", "=", id)
      .where("environment_id", "=", environmentId),
);

/** Unless the action works in another one by now: what a lost attempt left behind is nothing to it. */
async function stopActionOf(tx: WriteTransaction, { id: environmentId, spec }: Environment): Promise<void> {
  if (!spec?.workflowActionId) return;
  const [action] = await selectActionIn(tx.db, { id: spec.workflowActionId, environmentId });
  if (action) await stopHolder(tx, WorkKind.ACTION, action.id);
}

const selectAccountId = prepared<{ id: string; organizationId: string }, { account_id: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("member")
      .select("account_id")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** The account behind a user; null for what is no user. */
async function findAccountId(db: Kysely<Schema>, scope: Scope, userId: string): Promise<string | null> {
  const [row] = await selectAccountId(db, { id: userId, organizationId: scope.organizationId });
  return row?.account_id ?? null;
}
