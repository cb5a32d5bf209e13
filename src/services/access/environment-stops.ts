import type { Environment } from "#gen/service/v1/environment_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  ACTIVE_PHASES,
  isStartedSince,
  stopsWithItsCreator,
  wasStarted,
} from "../../domain/access/account-block.ts";
import { stoppedEnvironment } from "../../domain/environment/environment.ts";
import { findUsersOfAccount } from "../../store/access/account-block.ts";
import { findEnvironmentsOfCreator } from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { insertPendingStop } from "../../store/workflow/pending-stop.ts";
import { isExhausted, newRowBudget, type RowBudget, spend } from "../call/row-budget.ts";
import { changeEnvironment } from "../environment/environment-change.ts";

/** Environments read at a time: a write pauses only between its queries. */
const ENVIRONMENTS_PER_PAGE = 16;

/** An environment that is wanted in one of these is not told to stop. */
const NOT_TO_STOP = [EnvironmentPhase.STOPPED, EnvironmentPhase.DELETED];

/** The result of stopping the environments of an account. */
export interface StoppedEnvironments {
  /** The number of those that had been started. */
  readonly count: number;
  /** The organizations that have any of them. */
  readonly organizationIds: readonly string[];
}

/**
 * Stops the environments of an account in all organizations: the first of them
 * here, and the rest by jobs/stops.ts. Those that were already told to stop and
 * still run are counted, too.
 */
export async function stopEnvironmentsOfAccount(
  tx: WriteTransaction,
  accountId: string,
): Promise<StoppedEnvironments> {
  const organizationIds: string[] = [];
  let count = 0;
  const turn = newRowBudget();
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const scope = { organizationId };
    let isAny = false;
    // Before any of them is stopped: one that no runner has looks as if it had never run then.
    for await (const environment of activeOf(tx, scope, userId)) {
      isAny = true;
      if (wasStarted(environment)) count += 1;
    }
    if (!isAny) continue;
    organizationIds.push(organizationId);
    if (await stopEnvironments(tx, scope, userId, turn)) continue;
    await insertPendingStop(tx, scope, { mode: "cut_off", target: "creator", targetId: userId });
  }
  return { count, organizationIds };
}

/**
 * Stops environments of one creator, oldest first, as far as a turn goes.
 *
 * @param upTo made when the creator was cut off: what was made or started since goes on
 * @returns whether nothing is left to do
 */
export async function stopEnvironments(
  tx: WriteTransaction,
  scope: Scope,
  creatorId: string,
  turn: RowBudget,
  upTo?: string,
): Promise<boolean> {
  for await (const before of activeOf(tx, scope, creatorId, NOT_TO_STOP)) {
    if (upTo !== undefined && isStartedSince(before, upTo)) continue;
    const after = stoppedEnvironment(before);
    if (!after) continue;
    if (isExhausted(turn)) return false;
    spend(turn, 1);
    await changeEnvironment(tx, scope, before, after);
  }
  return true;
}

async function* activeOf(
  tx: WriteTransaction,
  scope: Scope,
  creatorId: string,
  exceptWanted: readonly EnvironmentPhase[] = [],
): AsyncGenerator<Environment> {
  const which = { creatorId, phases: ACTIVE_PHASES, exceptWanted };
  let page: Environment[] = [];
  do {
    page = await findEnvironmentsOfCreator(tx.db, scope, which, ENVIRONMENTS_PER_PAGE, page.at(-1)?.id);
    yield* page.filter(stopsWithItsCreator);
  } while (page.length === ENVIRONMENTS_PER_PAGE);
}
