import type { Environment } from "#gen/service/v1/environment_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  ACTIVE_PHASES,
  isStartedSince,
  isStoppedByBlock,
  wasStarted,
} from "../../domain/access/account-block.ts";
import { stoppedEnvironment } from "../../domain/environment/environment.ts";
import { findUsersOfAccount } from "../../store/access/account-block.ts";
import { findEnvironmentsOfCreator } from "../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { insertPendingStop } from "../../store/workflow/pending-stop.ts";
import { isExhausted, newRowBudget, type RowBudget, spend } from "../call/row-budget.ts";
import { changeEnvironment } from "../environment/environment-change.ts";

/** Number of environments read per query. Other reads can run only between the queries of a transaction. */
const ENVIRONMENTS_PER_PAGE = 16;

/** Desired phases of environments that need not be stopped. */
const STOPPED_OR_DELETED = [EnvironmentPhase.STOPPED, EnvironmentPhase.DELETED];

/** The result of stopping the environments of an account. */
export interface StoppedEnvironments {
  /** Number of environments that had been started. */
  readonly count: number;
  /** Ids of the organizations that they belong to. */
  readonly organizationIds: readonly string[];
}

/**
 * Stops the active environments of an account in all organizations. jobs/stops.ts stops those that exceed the row
 * budget of one transaction. The count includes environments that are already stopping.
 */
export async function stopEnvironmentsOfAccount(
  tx: WriteTransaction,
  accountId: string,
): Promise<StoppedEnvironments> {
  const organizationIds: string[] = [];
  let count = 0;
  const budget = newRowBudget();
  for (const { userId, organizationId } of await findUsersOfAccount(tx.db, accountId)) {
    const scope = { organizationId };
    let isAny = false;
    // Counted before the first stop, because a stopped environment without a runner no longer counts as started.
    for await (const environment of findActiveEnvironments(tx, scope, userId)) {
      isAny = true;
      if (wasStarted(environment)) count += 1;
    }
    if (!isAny) continue;
    organizationIds.push(organizationId);
    if (await stopEnvironments(tx, scope, userId, budget)) continue;
    await insertPendingStop(tx, scope, { mode: "cut_off", target: "creator", targetId: userId });
  }
  return { count, organizationIds };
}

/**
 * Stops environments of one creator, oldest first, within a row budget.
 *
 * @param revokedAtId an id generated when the creator was blocked; environments that
 *   were created or started since continue
 * @returns true when none is left
 */
export async function stopEnvironments(
  tx: WriteTransaction,
  scope: Scope,
  creatorId: string,
  budget: RowBudget,
  revokedAtId?: string,
): Promise<boolean> {
  for await (const before of findActiveEnvironments(tx, scope, creatorId, STOPPED_OR_DELETED)) {
    if (revokedAtId !== undefined && isStartedSince(before, revokedAtId)) continue;
    const after = stoppedEnvironment(before);
    if (!after) continue;
    if (isExhausted(budget)) return false;
    spend(budget, 1);
    await changeEnvironment(tx, scope, before, after);
  }
  return true;
}

async function* findActiveEnvironments(
  tx: WriteTransaction,
  scope: Scope,
  creatorId: string,
  exceptDesired: readonly EnvironmentPhase[] = [],
): AsyncGenerator<Environment> {
  const which = { creatorId, phases: ACTIVE_PHASES, exceptWanted: exceptDesired };
  let page: Environment[] = [];
  do {
    page = await findEnvironmentsOfCreator(tx.db, scope, which, ENVIRONMENTS_PER_PAGE, page.at(-1)?.id);
    yield* page.filter(isStoppedByBlock);
  } while (page.length === ENVIRONMENTS_PER_PAGE);
}
