import { create } from "@bufbuild/protobuf";
import { type Policies as LeasePolicies, PoliciesSchema } from "#gen/runner/v1/work_pb.js";
import { type AgentPolicy, AgentPolicySchema } from "#gen/service/v1/organization_pb.js";
import type { SecurityPolicy } from "#gen/service/v1/security_pb.js";
import type { Policies } from "./policies.ts";

/**
 * Returns those of an organization's policies that a runner enforces, as a lease contains them.
 * @param hasScmTools whether the subject that the work runs as is a member of the group that the tools are limited to,
 * if they are limited to one
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
 * Returns the policy for the agents of one subject. Runners withhold the tools while it names a group, also those of
 * earlier releases: for a member it names none.
 */
function forSubject(policy: AgentPolicy, hasScmTools: boolean): AgentPolicy {
  if (policy.scmToolsAllowedGroupId === "") return policy;
  return hasScmTools ? { ...policy, scmToolsAllowedGroupId: "" } : { ...policy, scmToolsDisabled: true };
}
