import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Keys } from "../../keys.ts";
import { findTokens, insertToken, removeToken } from "../../store/identity/token.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";

/**
 * The maximum lifetime of a token of an environment. The token is removed earlier with the environment, with the next
 * lease on it, or with the agent execution.
 */
const TOKEN_LIFETIME_MS = 24 * 3600 * 1000;

/**
 * Creates the token with which processes in an environment act as it, and removes earlier ones.
 *
 * @returns the token's value, which is not stored; empty for an environment whose desired phase is not running, where
 * no process may act any longer
 */
export async function replaceEnvironmentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  environment: Environment,
): Promise<string> {
  await removeEnvironmentTokens(tx, scope, environment.id);
  return addEnvironmentToken(tx, scope, keys, environment);
}

/** Removes the tokens with which processes in an environment act as it, while none runs there. */
export async function removeEnvironmentTokens(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<void> {
  for (const token of await findTokens(tx.db, scope, "environment", environmentId)) {
    await removeToken(tx, scope, token);
  }
}

/** An agent execution that works in an environment. */
export interface AgentTokenHolder {
  readonly agentExecutionId: string;
  /**
   * The account responsible for it, if that may differ from the account of the environment's creator; null for that
   * account, or for none.
   */
  readonly accountId: string | null;
}

/**
 * Like {@link replaceEnvironmentToken}, for one of several agent executions in the environment. The tokens of the
 * others remain valid.
 */
export async function replaceAgentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  environment: Environment,
  { agentExecutionId, accountId }: AgentTokenHolder,
): Promise<string> {
  await removeAgentTokens(tx, scope, environment.id, agentExecutionId);
  return addEnvironmentToken(tx, scope, keys, environment, { body: bodyFor(agentExecutionId), accountId });
}

/** Removes the tokens of an agent execution whose processes have ended or must end. */
export async function removeAgentTokens(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
  agentExecutionId: string,
): Promise<void> {
  const body = bodyFor(agentExecutionId);
  for (const token of await findTokens(tx.db, scope, "environment", environmentId)) {
    if (token.body === body) await removeToken(tx, scope, token);
  }
}

/** Returns the agent execution whose token the caller has; undefined for a token of an environment's other processes. */
export async function agentOfToken(db: Reader, caller: Caller): Promise<string | undefined> {
  const tokens = await findTokens(db, caller, "environment", caller.subject.id);
  const token = tokens.find(({ id }) => id === caller.tokenId);
  return token && (JSON.parse(token.body) as { agentExecutionId?: string }).agentExecutionId;
}

/** The token of an environment's own processes. */
const FOR_ALL = { body: "{}", accountId: null };

const bodyFor = (agentExecutionId: string) => JSON.stringify({ agentExecutionId });

/** Creates a token like {@link replaceEnvironmentToken}, but keeps earlier tokens of the environment. */
export async function addEnvironmentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  { id: environmentId, spec }: Environment,
  { body, accountId }: { readonly body: string; readonly accountId: string | null } = FOR_ALL,
): Promise<string> {
  if (spec?.desiredPhase !== EnvironmentPhase.RUNNING) return "";
  const { value, hash } = keys.mintToken("environment");
  await insertToken(tx, scope, {
    id: tx.newId(),
    organization_id: scope.organizationId,
    kind: "environment",
    subject_id: environmentId,
    hash,
    hmac_key_id: null,
    read_only: 0,
    expires_at: tx.now + TOKEN_LIFETIME_MS,
    last_used_at: null,
    creator_account_id: accountId,
    disabled_at: null,
    body,
  });
  return value;
}
