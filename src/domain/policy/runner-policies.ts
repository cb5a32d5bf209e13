import { create } from "@bufbuild/protobuf";
import { type Policies as LeasePolicies, PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import { type AgentPolicy, AgentPolicySchema } from "#gen/service/v1/organization_pb.js";
import type { SecurityPolicy } from "#gen/service/v1/security_pb.js";
import type { Policies } from "./policies.ts";

/** Returns those of an organization's policies that a runner enforces, as a lease contains them. */
export function leasePolicies(
  { effective }: Policies,
  securityPolicy: SecurityPolicy | undefined,
): LeasePolicies {
  const {
    vetoExecPolicy,
    vetoFilePolicy,
    securityAgentPolicy,
    defaultEnvironmentImage,
    agentPolicy,
    egress,
  } = effective;
  return create(PoliciesSchema, {
    ...(vetoExecPolicy && { vetoExecPolicy }),
    ...(vetoFilePolicy && { vetoFilePolicy }),
    ...(securityPolicy && { securityPolicy }),
    ...(securityAgentPolicy && { securityAgentPolicy }),
    defaultEnvironmentImage: defaultEnvironmentImage ?? "",
    ...(egress && { egress }),
    agentPolicy: withoutGroups(agentPolicy ?? create(AgentPolicySchema)),
  });
}

/**
 * Returns the policy for agents without tools that are limited to a group: there are no groups yet,
 * so nobody has them.
 */
function withoutGroups(policy: AgentPolicy): AgentPolicy {
  return policy.scmToolsAllowedGroupId === "" ? policy : { ...policy, scmToolsDisabled: true };
}
