import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { type Environment, EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { isBeingCreated, needsWork } from "../../domain/environment/environment-phase.ts";
import { unindexed } from "../expressions.ts";
import { AGENT_WITH_ENVIRONMENT_LEVEL, mayStore } from "../feature-level.ts";
import { findTokens, removeToken } from "../identity/token.ts";
import { fromBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import {
  AGENT_WITH_ENVIRONMENT,
  API_AGENT_WITH_ENVIRONMENT,
  findWork,
  insertWork,
  removeWork,
  stopHolder,
  stopWork,
  type WithAgentKind,
} from "../runner/work.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** Options of queued work on an environment. */
export interface EnvironmentWorkOptions {
  /** True for a new environment that an agent execution waits for. */
  readonly withAgent?: boolean;
  /** True if the agent of that execution is defined by the API. */
  readonly isApiAgent?: boolean;
}

/**
 * Queues the work, if any, that a runner must do to bring the environment to its desired phase. There must be no open
 * work on it.
 */
export async function queueEnvironmentWork(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
  { withAgent = false, isApiAgent = false }: EnvironmentWorkOptions = {},
): Promise<void> {
  if (!needsWork(environment)) return;
  const { id, metadata, spec } = environment;
  const creatorId = metadata?.creator?.id ?? "";
  // Stopping and cleaning up is done for no account: it must continue when the creator's account is blocked.
  const isForCreator = spec?.desiredPhase === EnvironmentPhase.RUNNING;
  await insertWork(tx, scope, {
    kind:
      withAgent && mayStore(tx, AGENT_WITH_ENVIRONMENT_LEVEL)
        ? kindWithAgent(isApiAgent)
        : WorkKind.ENVIRONMENT,
    subjectId: id,
    groupId: creatorId,
    accountId: isForCreator ? await findAccountId(tx.db, scope, creatorId) : null,
    runnerId: metadata?.runnerId || null,
    environmentClassId: spec?.machine?.class || null,
  });
}

/** Returns the kind of work on a new environment that an agent execution waits for. */
export function kindWithAgent(isApiAgent: boolean): WithAgentKind {
  return isApiAgent ? API_AGENT_WITH_ENVIRONMENT : AGENT_WITH_ENVIRONMENT;
}

/**
 * Updates the queue when the desired phase of an environment has changed. A runner that works on it is asked to stop;
 * the remaining work is queued afterwards, even when the runner creates the environment together with an agent
 * execution. An action is asked to stop with its environment.
 */
export async function syncEnvironmentWork(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
): Promise<void> {
  if (before.spec?.desiredPhase === after.spec?.desiredPhase) return;
  const isToStop = after.spec?.desiredPhase !== EnvironmentPhase.RUNNING;
  const action = isToStop ? await findActionOf(tx, scope, after) : undefined;
  if (action) await stopHolder(tx, scope, WorkKind.ACTION, action.id);
  if ((await stopWork(tx, scope, WorkKind.ENVIRONMENT, after.id)) === "stopping") return;
  if (await isMadeWithAgent(tx.db, scope, before)) return;
  await queueEnvironmentWork(tx, scope, after);
}

const selectAgentLease = prepared<{ organizationId: string; environmentId: string }, { id: string }>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_execution")
      .innerJoin("work", "work.subject_id", "agent_execution.id")
      .select("work.id")
      .where("agent_execution.environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where("work.kind", "=", WorkKind.AGENT)
      .where("work.leased_by", "is not", null)
      .limit(1),
);

/** Returns whether a runner starts an environment together with an agent execution. */
async function isMadeWithAgent(
  db: Reader,
  { organizationId }: Scope,
  environment: Environment,
): Promise<boolean> {
  if (!isBeingCreated(environment)) return false;
  return (await selectAgentLease(db, { organizationId, environmentId: environment.id })).length > 0;
}

/** Returns whether the work on an environment is queued or leased, by itself or with an agent execution. */
export async function hasEnvironmentWork(
  db: Reader,
  scope: Scope,
  environment: Environment,
): Promise<boolean> {
  if (await findWork(db, scope, WorkKind.ENVIRONMENT, environment.id)) return true;
  return isMadeWithAgent(db, scope, environment);
}

/** Options of the removal of an environment. */
export interface EnvironmentRemovalOptions {
  /** True when the same write ends the action that works in it, which is then not asked to stop. */
  readonly endsAction?: boolean;
}

/**
 * Finds the rows that exist only for an environment: its work, and the tokens that act as it.
 * @returns the function that removes them, and asks its action to stop
 */
export async function findEnvironmentDependents(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
  { endsAction = false }: EnvironmentRemovalOptions = {},
): Promise<() => Promise<void>> {
  const [action, work, tokens] = await Promise.all([
    endsAction ? undefined : findActionOf(tx, scope, environment),
    findWork(tx.db, scope, WorkKind.ENVIRONMENT, environment.id),
    findTokens(tx.db, scope, "environment", environment.id),
  ]);
  return async () => {
    if (action) await stopHolder(tx, scope, WorkKind.ACTION, action.id);
    if (work) await removeWork(tx, work.id);
    for (const token of tokens) await removeToken(tx, scope, token);
  };
}

const selectActionIn = prepared<
  { id: string; organizationId: string; environmentId: string },
  { id: string }
>((db, { id, organizationId, environmentId }) =>
  db
    .selectFrom("workflow_action")
    .select("id")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .where("environment_id", "=", environmentId)
    .where("queued", "=", 1),
);

/**
 * Returns the action of an environment, unless it has ended or now works in another one: the environment of a lost
 * attempt no longer affects it.
 */
async function findActionOf(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { id: environmentId, spec }: Environment,
): Promise<{ readonly id: string } | undefined> {
  if (!spec?.workflowActionId) return undefined;
  const [action] = await selectActionIn(tx.db, { id: spec.workflowActionId, organizationId, environmentId });
  return action;
}

const selectOfAction = prepared<
  { actionId: string; organizationId: string },
  { body: string; has_agents: number }
>((db, { actionId, organizationId }) =>
  db
    .selectFrom("workflow_action")
    .innerJoin("environment", "environment.id", "workflow_action.environment_id")
    .select((eb) => {
      const agents = eb.selectFrom("agent_execution").select("agent_execution.id");
      const interests = eb.selectFrom("agent_interest").select("agent_interest.interest_id");
      const isIn = eb.exists(agents.whereRef("agent_execution.environment_id", "=", "environment.id"));
      const waits = eb.exists(interests.whereRef("agent_interest.environment_id", "=", "environment.id"));
      const hasAgents = eb
        .case()
        .when(eb.or([isIn, waits]))
        .then(eb.lit(1))
        .else(eb.lit(0))
        .end();
      return ["environment.body", hasAgents.as("has_agents")];
    })
    .where("workflow_action.id", "=", actionId)
    .where(unindexed("workflow_action.organization_id"), "=", organizationId)
    .where(unindexed("environment.organization_id"), "=", organizationId),
);

/** An environment, and whether an agent execution is in it or waits for it. */
export interface EnvironmentOfAction {
  readonly environment: Environment;
  readonly hasAgents: boolean;
}

/** Returns the environment that an action works in. */
export async function findEnvironmentOfAction(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
): Promise<EnvironmentOfAction | undefined> {
  const [row] = await selectOfAction(db, { actionId, organizationId });
  return row && { environment: fromBody(EnvironmentSchema, row.body), hasAgents: row.has_agents === 1 };
}

const selectAccountId = prepared<{ id: string; organizationId: string }, { account_id: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("member")
      .select("account_id")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Returns the account of a user; null for a subject that is not a user. */
async function findAccountId(db: Reader, scope: Scope, userId: string): Promise<string | null> {
  const [row] = await selectAccountId(db, { id: userId, organizationId: scope.organizationId });
  return row?.account_id ?? null;
}
