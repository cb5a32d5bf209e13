import { mayReadAgentExecution, mayReadEveryAgentExecution } from "../../../domain/policy/agent-policy.ts";
import {
  findCreatorsIn,
  findOpenAgentExecutionIdsIn,
} from "../../../store/agent/agent-execution-environment.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { EnvironmentRuns } from "../../environment/environment-runs.ts";

/** The agent executions in environments. Runners have their own operations, and read none here. */
export const runsInEnvironment: EnvironmentRuns = {
  async mayReadAny(db, caller, environmentId) {
    if (caller.role === "runner") return false;
    const creators = await findCreatorsIn(db, caller, environmentId);
    if (creators.length === 0) return false;
    const policies = await findPolicies(db, caller);
    if (mayReadEveryAgentExecution(policies, caller.role)) return true;
    return creators.some((creator) => mayReadAgentExecution(policies, caller, { creator, runnerId: "" }));
  },

  findOpenIds: findOpenAgentExecutionIdsIn,
};
