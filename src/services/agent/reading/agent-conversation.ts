import type { Caller } from "../../../domain/identity/caller.ts";
import { mayReadAgentExecution } from "../../../domain/policy/agent-policy.ts";
import { findEarlierParts, type OutputPart, wholeOutput } from "../../../store/agent/agent-conversation.ts";
import type { StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Reader } from "../../../store/store.ts";
import { isSharedWith } from "../../policy/shared-role.ts";

/**
 * Returns the parts of an agent execution's conversation that the caller may read, oldest first: its own output, and
 * the output of the executions that it continues, up to the first that the caller may not read.
 */
export async function findConversation(
  db: Reader,
  caller: Caller,
  { execution, earlier }: StoredAgentExecution,
): Promise<readonly OutputPart[]> {
  const own = wholeOutput(execution.id);
  if (!earlier) return [own];
  const policies = await findPolicies(db, caller);
  // A whole conversation takes place in one environment, and so on one runner.
  const runnerId = caller.role === "runner" ? caller.subject.id : "";
  const parts = await findEarlierParts(db, caller, earlier);
  const readable: OutputPart[] = [];
  for (const { creator, ...part } of parts) {
    const isReadable =
      mayReadAgentExecution(policies, caller, { creator, runnerId }) ||
      (await isSharedWith(db, caller, policies, part.executionId));
    if (!isReadable) break;
    readable.unshift(part);
  }
  return [...readable, own];
}
