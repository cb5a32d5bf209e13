import { create } from "@bufbuild/protobuf";
import { type Policies as LeasePolicies, PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import { type AgentPolicy, AgentPolicySchema } from "#gen/service/v1/organization_pb.js";
import type { SecurityPolicy } from "#gen/service/v1/security_pb.js";
import type { Policies } from "./policies.ts";

/**
 * Returns the policies of an organization that a runner enforces, in the form of a lease.
 * @param hasScmTools true unless the SCM tools are limited to a group that the subject the work runs as is not in
 */
export function leasePolicies(
  { effective }: Policies,
  securityPolicy: SecurityPolicy | undefined,
  hasScmTools: boolean,
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
    agentPolicy: forSubject(agentPolicy ?? create(AgentPolicySchema), hasScmTools),
  });
}

/**
 * Returns the policy for the agents of one subject. Runners, including those of earlier releases, withhold the SCM tools
 * while the policy names a group, so the group is cleared for its members.
 */
function forSubject(policy: AgentPolicy, hasScmTools: boolean): AgentPolicy {
  if (policy.scmToolsAllowedGroupId === "") return policy;
  return hasScmTools ? { ...policy, scmToolsAllowedGroupId: "" } : { ...policy, scmToolsDisabled: true };
}
