import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { notFound } from "../../domain/error.ts";
import { findMember, updateMember } from "../../store/identity/member.ts";
import { removeSessionsOf } from "../../store/identity/session.ts";
import { disablePersonalTokens, disableTokensOfCreator } from "../../store/identity/token-disabling.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { insertPendingStop } from "../../store/workflow/pending-stop.ts";
import { haltAgentExecutions } from "../agent/halt-agent-execution.ts";
import { newRowBudget } from "../call/row-budget.ts";
import { revokeExecutionsOfExecutor } from "../workflow/execution/execution-cancel.ts";
import { stopEnvironments } from "./environment-stops.ts";
import { requireAnotherAdministrator } from "./membership.ts";

/** The failure of agent executions whose creator was suspended. */
const USER_SUSPENDED = {
  reason: AgentExecutionFailureReason.SERVICE,
  message: "its creator was suspended",
} as const;

/**
 * Suspends a member of the scope's organization and ends everything that acts for it there. Its tokens are revoked
 * permanently; its agent executions and the executions that run as it end immediately. jobs/stops.ts stops the
 * environments that exceed one transaction.
 *
 * @throws DomainError NOT_FOUND or LAST_ADMINISTRATOR
 */
export async function suspendMember(tx: WriteTransaction, scope: Scope, userId: string): Promise<void> {
  const member = await findMember(tx.db, scope, userId);
  if (!member) throw notFound("user");
  if (member.suspended_at !== null) return;
  await requireAnotherAdministrator(tx, scope, member);
  await removeSessionsOf(tx, scope, userId);
  await disablePersonalTokens(tx, scope, userId);
  await disableTokensOfCreator(tx, member.account_id, scope);
  // Before the environments, so that the failure names the suspension and not the stopped environment.
  await haltAgentExecutions(tx, scope, { creatorId: userId }, { failure: USER_SUSPENDED, immediate: true });
  if (!(await stopEnvironments(tx, scope, userId, newRowBudget()))) {
    await insertPendingStop(tx, scope, { mode: "cut_off", target: "creator", targetId: userId });
  }
  await revokeExecutionsOfExecutor(tx, scope, userId);
  await updateMember(tx, scope, member, { ...member, suspended_at: tx.now });
}

/**
 * Lifts the suspension of a member. What the suspension revoked or stopped is not restored.
 *
 * @throws DomainError NOT_FOUND
 */
export async function liftSuspension(tx: WriteTransaction, scope: Scope, userId: string): Promise<void> {
  const member = await findMember(tx.db, scope, userId);
  if (!member) throw notFound("user");
  if (member.suspended_at === null) return;
  await updateMember(tx, scope, member, { ...member, suspended_at: null });
}
