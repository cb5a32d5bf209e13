import { Principal } from "#gen/service/v1/identity_pb.js";
import { RunOrigin as Origin } from "../../../domain/policy/approval-policy.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import type { Reader, Scope } from "../../../store/store.ts";

/** Returns who started the first run of the tree: no run in it may do more than that one. */
export async function findOrigin(db: Reader, scope: Scope, stored: StoredAgentExecution): Promise<Origin> {
  let root = stored;
  for (;;) {
    const parentId = root.execution.metadata?.parentExecutionId ?? "";
    const parent = parentId === "" ? undefined : await findAgentExecution(db, scope, parentId);
    if (!parent) break;
    root = parent;
  }
  if (root.stepKey !== null) return Origin.WORKFLOW_STEP;
  const principal = root.execution.metadata?.creator?.principal;
  return principal === Principal.SERVICE_ACCOUNT ? Origin.SERVICE_ACCOUNT : Origin.PERSON;
}
