import type { Policies } from "#gen/runner/v1/work_pb.js";
import { WorkFailure } from "./work-failure.ts";

/**
 * Throws when policies apply in the environment that this runner cannot enforce:
 * commands run on the machine as it is, where nothing monitors what they start
 * and touch, and in no image. A policy that is switched off, or covers nothing,
 * is supported by any runner.
 *
 * @throws WorkFailure policy_unsupported, naming them
 */
export function requireSupportedPolicies(policies: Policies | undefined): void {
  const unsupported = policies ? applicablePolicies(policies) : [];
  if (unsupported.length === 0) return;
  throw new WorkFailure(
    "policy_unsupported",
    `this runner runs commands in plain folders and cannot keep ${unsupported.join(", ")}: ` +
      "let a runner do the work that can, or change the organization's policies",
  );
}

function applicablePolicies({
  vetoExecPolicy,
  vetoFilePolicy,
  securityPolicy,
  securityAgentPolicy,
  defaultEnvironmentImage,
}: Policies): string[] {
  const { paths, blockDevices } = vetoFilePolicy ?? {};
  const { endpointSecurity, customAgents = [] } = securityAgentPolicy ?? {};
  const applies = {
    vetoExecPolicy: vetoExecPolicy?.enabled && vetoExecPolicy.executables.length > 0,
    vetoFilePolicy: vetoFilePolicy?.enabled && ((paths?.entries.length ?? 0) > 0 || blockDevices?.enabled),
    securityPolicyId: (securityPolicy?.spec?.executables?.rules.length ?? 0) > 0,
    securityAgentPolicy: endpointSecurity?.enabled || customAgents.some(({ enabled }) => enabled),
    defaultEnvironmentImage: defaultEnvironmentImage !== "",
  };
  return Object.entries(applies).flatMap(([name, isBinding]) => (isBinding ? [name] : []));
}
