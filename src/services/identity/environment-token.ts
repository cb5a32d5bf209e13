import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Keys } from "../../keys.ts";
import { findTokens, insertToken, removeToken } from "../../store/identity/token.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** How long a token of an environment holds at most; it goes with the environment, the next lease on it, or the agent run. */
const VALID_MS = 24 * 3600 * 1000;

/**
 * Makes the token by which processes in an environment act as it; one that was
 * made before no longer holds.
 *
 * @returns its value, which is stored nowhere; empty for an environment that is
 *   to be stopped or deleted, in which nothing acts any more
 */
export async function replaceEnvironmentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  environment: Environment,
): Promise<string> {
  for (const older of await findTokens(tx.db, scope, "environment", environment.id)) {
    await removeToken(tx, scope, older);
  }
  return addEnvironmentToken(tx, scope, keys, environment, { body: "{}", accountId: null });
}

/** An agent run among those that work in an environment. */
export interface AgentOfEnvironment {
  readonly agentExecutionId: string;
  /**
   * The account that answers for it, where that need not be the one of the
   * environment's creator; null for that one, or for none.
   */
  readonly accountId: string | null;
}

/** As {@link replaceEnvironmentToken}, for one agent run of several in the environment: those of the others hold on. */
export async function replaceAgentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  environment: Environment,
  { agentExecutionId, accountId }: AgentOfEnvironment,
): Promise<string> {
  await removeAgentTokens(tx, scope, environment.id, agentExecutionId);
  return addEnvironmentToken(tx, scope, keys, environment, { body: bodyFor(agentExecutionId), accountId });
}

/** Ends what an agent run could do as its environment: its processes are gone, or are to go. */
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

const bodyFor = (agentExecutionId: string) => JSON.stringify({ agentExecutionId });

async function addEnvironmentToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "mintToken">,
  { id: environmentId, spec }: Environment,
  { body, accountId }: { readonly body: string; readonly accountId: string | null },
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
    expires_at: tx.now + VALID_MS,
    last_used_at: null,
    creator_account_id: accountId,
    disabled_at: null,
    body,
  });
  return value;
}
