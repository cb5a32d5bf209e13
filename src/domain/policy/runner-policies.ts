import { create } from "@bufbuild/protobuf";
import { type Policies as LeasePolicies, PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import { type AgentPolicy, AgentPolicySchema } from "#gen/service/v1/organization_pb.js";
import type { SecurityPolicy } from "#gen/service/v1/security_pb.js";
import type { Policies } from "./policies.ts";

/** What of an organization's policies only a runner can keep, as it travels with a lease. */
export function policiesOfLease(
  { inForce }: Policies,
  securityPolicy: SecurityPolicy | undefined,
): LeasePolicies {
  const { vetoExecPolicy, vetoFilePolicy, securityAgentPolicy, defaultEnvironmentImage, agentPolicy } =
    inForce;
  return create(PoliciesSchema, {
    ...(vetoExecPolicy && { vetoExecPolicy }),
    ...(vetoFilePolicy && { vetoFilePolicy }),
    ...(securityPolicy && { securityPolicy }),
    ...(securityAgentPolicy && { securityAgentPolicy }),
    defaultEnvironmentImage: defaultEnvironmentImage ?? "",
    agentPolicy: withoutGroups(agentPolicy ?? create(AgentPolicySchema)),
  });
}

/** While there are no groups, tools that are for one group only are for nobody. */
function withoutGroups(policy: AgentPolicy): AgentPolicy {
  return policy.scmToolsAllowedGroupId === "" ? policy : { ...policy, scmToolsDisabled: true };
}
