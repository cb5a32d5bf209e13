import { Principal } from "#gen/service/v1/identity_pb.js";
import { RunOrigin as Origin } from "../../domain/policy/approval-policy.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import type { Reader, Scope } from "../../store/store.ts";

const ORIGINS: readonly Origin[] = [Origin.PERSON, Origin.SERVICE_ACCOUNT, Origin.WORKFLOW_STEP];

/**
 * Returns the origins of an execution: the origin of the first execution of its tree or, if that one continues
 * another conversation, the origins stored with it. A run may do only what all of its origins may.
 */
export async function findOrigins(
  db: Reader,
  scope: Scope,
  stored: StoredAgentExecution,
): Promise<readonly Origin[]> {
  let root = stored;
  for (;;) {
    const parentId = root.execution.metadata?.parentExecutionId ?? "";
    const parent = parentId === "" ? undefined : await findAgentExecution(db, scope, parentId);
    if (!parent) break;
    root = parent;
  }
  const { earlier } = root;
  if (earlier) return ORIGINS.filter((origin) => (earlier.origins & (1 << origin)) !== 0);
  if (root.stepKey !== null) return [Origin.WORKFLOW_STEP];
  return [originOf(root.execution.metadata?.creator?.principal)];
}

/** Returns the origin of a run that a principal starts. */
export function originOf(principal: Principal | undefined): Origin {
  return principal === Principal.SERVICE_ACCOUNT ? Origin.SERVICE_ACCOUNT : Origin.PERSON;
}

/** Returns origins as a bit set, which is how they are stored. */
export function originBits(origins: readonly Origin[]): number {
  return origins.reduce((bits, origin) => bits | (1 << origin), 0);
}
