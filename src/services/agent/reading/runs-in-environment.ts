import { mayReadAgentExecution, mayReadEveryAgentExecution } from "../../../domain/policy/agent-policy.ts";
import {
  findCreatorsIn,
  findOpenAgentExecutionIdsIn,
  hasSharedExecutionIn,
} from "../../../store/agent/agent-execution-environment.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { EnvironmentRuns } from "../../environment/environment-runs.ts";
import { findSharingGroups } from "../../policy/shared-role.ts";

/** The agent executions in environments. Runners cannot read them here; they have separate operations. */
export const runsInEnvironment: EnvironmentRuns = {
  async mayReadAny(db, caller, environmentId) {
    if (caller.role === "runner") return false;
    const creators = await findCreatorsIn(db, caller, environmentId);
    if (creators.length === 0) return false;
    const policies = await findPolicies(db, caller);
    if (mayReadEveryAgentExecution(policies, caller.role)) return true;
    if (creators.some((creator) => mayReadAgentExecution(policies, caller, { creator, runnerId: "" })))
      return true;
    const groupIds = await findSharingGroups(db, caller, policies);
    return groupIds.length > 0 && hasSharedExecutionIn(db, caller, environmentId, groupIds);
  },

  findOpenIds: findOpenAgentExecutionIdsIn,
};
