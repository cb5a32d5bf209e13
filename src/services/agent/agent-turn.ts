import type { SendToAgentExecutionRequest } from "#gen/service/v1/agent_service_pb.js";
import { requireAgentSettingsAllowed, requireModeAllowed } from "../../domain/policy/agent-policy.ts";
import { findAgent } from "../../store/agent/agent.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import type { InputTurn } from "../../store/agent/agent-input.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * What goes with the turn that an input begins: its options and, for a message of
 * a user to an agent that takes them, the settings of that turn.
 *
 * @throws PolicyDenied
 */
export async function turnOfInput(
  tx: WriteTransaction,
  scope: Scope,
  { execution }: StoredAgentExecution,
  { input, turnOptions, extAgentSettings: asked }: SendToAgentExecutionRequest,
): Promise<InputTurn> {
  const settings = input.case === "userInput" ? asked : undefined;
  if (!turnOptions && !settings) return {};
  const policies = await findPolicies(tx.db, scope);
  for (const mode of turnOptions?.modes ?? []) requireModeAllowed(policies, mode);
  if (settings) requireAgentSettingsAllowed(policies, settings);
  const agent = settings && (await findAgent(tx.db, scope, execution.spec?.agentId ?? ""));
  return {
    ...(turnOptions && { turnOptions }),
    ...(settings && agent?.agent.takesSettings && { extAgentSettings: settings }),
  };
}
