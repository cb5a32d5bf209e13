import { create } from "@bufbuild/protobuf";
import type { Policies } from "#gen/runner/v1/work_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ForkEgress } from "#gen/service/v1/fork_work_pb.js";
import { type KeptPolicies, KeptPoliciesSchema, RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { isWithheld } from "../policy/work-secrets.ts";
import { executablesOf, filesOf, type PolicyNeed } from "./path-policies.ts";

/** The policies of a set, each by its bit; rows hold them so. */
export type PolicySet = number;

/** The names of what decides on each, as people find it in the organization's policies and in triggers. */
const NAMES: Readonly<Record<Exclude<RunnerPolicy, RunnerPolicy.UNSPECIFIED>, string>> = {
  [RunnerPolicy.VETO_EXEC]: "vetoExecPolicy",
  [RunnerPolicy.VETO_EXEC_AUDIT]: "vetoExecPolicy",
  [RunnerPolicy.VETO_FILE]: "vetoFilePolicy",
  [RunnerPolicy.VETO_FILE_AUDIT]: "vetoFilePolicy",
  [RunnerPolicy.SECURITY_POLICY]: "securityPolicyId",
  [RunnerPolicy.SECURITY_POLICY_AUDIT]: "securityPolicyId",
  [RunnerPolicy.SECURITY_AGENTS]: "securityAgentPolicy",
  [RunnerPolicy.ENVIRONMENT_IMAGE]: "defaultEnvironmentImage",
  [RunnerPolicy.EGRESS]: "egress",
  [RunnerPolicy.FORK_WORK]: "forkWork",
  [RunnerPolicy.FORK_EGRESS]: "forkWork.egress",
};

const KNOWN = Object.keys(NAMES).map(Number) as (keyof typeof NAMES)[];

/** All policies, also those of later releases that rows may hold. */
export const EVERY_POLICY: PolicySet = 0x7fff_ffff;

/** Returns policies as a set, without those that this release does not know. */
export function policySet(policies: readonly RunnerPolicy[]): PolicySet {
  return KNOWN.filter((each) => policies.includes(each)).reduce((set, each) => set | (1 << each), 0);
}

/**
 * The work that a runner may be given that does not say what it keeps: it is of an earlier release, which fails what it cannot
 * keep. Of pull requests from forks those releases know nothing.
 */
const UNSAID: PolicySet = policySet(
  KNOWN.filter((each) => each !== RunnerPolicy.FORK_WORK && each !== RunnerPolicy.FORK_EGRESS),
);

/** Returns the set that a runner says to keep; null for one that does not say. */
export function supportedPoliciesOf(said: KeptPolicies | undefined): PolicySet | null {
  return said ? policySet(said.policies) : null;
}

/** Returns a set as a runner says it; undefined for one that does not say. */
export function keptPoliciesOf(said: PolicySet | null): KeptPolicies | undefined {
  if (said === null) return undefined;
  return create(KeptPoliciesSchema, { policies: KNOWN.filter((each) => (said & (1 << each)) !== 0) });
}

/** Returns the policies under which a runner may be given work. @param said null where it does not say */
export function offeredTo(said: PolicySet | null): PolicySet {
  return said ?? UNSAID;
}

/** Returns those of a set that are not in another. */
export function policiesWithout(set: PolicySet, kept: PolicySet): PolicySet {
  return set & ~kept;
}

/** Returns what the policies of a lease need of its runner. */
export function neededByPolicies(policies: Policies): PolicySet {
  const { vetoExecPolicy, securityPolicy } = executablesOf(policies);
  const { endpointSecurity, customAgents = [] } = policies.securityAgentPolicy ?? {};
  const hasAgents = endpointSecurity?.enabled || customAgents.some(({ enabled }) => enabled);
  return policySet([
    byPath(vetoExecPolicy, RunnerPolicy.VETO_EXEC, RunnerPolicy.VETO_EXEC_AUDIT),
    byPath(filesOf(policies), RunnerPolicy.VETO_FILE, RunnerPolicy.VETO_FILE_AUDIT),
    byPath(securityPolicy, RunnerPolicy.SECURITY_POLICY, RunnerPolicy.SECURITY_POLICY_AUDIT),
    hasAgents ? RunnerPolicy.SECURITY_AGENTS : RunnerPolicy.UNSPECIFIED,
    policies.defaultEnvironmentImage === "" ? RunnerPolicy.UNSPECIFIED : RunnerPolicy.ENVIRONMENT_IMAGE,
    policies.egress ? RunnerPolicy.EGRESS : RunnerPolicy.UNSPECIFIED,
  ]);
}

function byPath({ applies, isByPath }: PolicyNeed, blocked: RunnerPolicy, watched: RunnerPolicy) {
  if (!applies) return RunnerPolicy.UNSPECIFIED;
  return isByPath ? blocked : watched;
}

/**
 * Returns what work in an environment needs of its runner; nothing where the environment is to stop. What prepares
 * workspaces, and has no environment, runs no commands and needs nothing.
 */
export function neededPolicies(policies: Policies, environment: Environment | undefined): PolicySet {
  if (environment?.spec?.desiredPhase !== EnvironmentPhase.RUNNING) return 0;
  const { forkEgress = ForkEgress.UNSPECIFIED } = environment.metadata ?? {};
  return (
    neededByPolicies(policies) |
    policySet([
      isWithheld(environment) ? RunnerPolicy.FORK_WORK : RunnerPolicy.UNSPECIFIED,
      forkEgress === ForkEgress.SOURCES ? RunnerPolicy.FORK_EGRESS : RunnerPolicy.UNSPECIFIED,
    ])
  );
}

/** Returns the names of the policies of a set, each once. */
export function policyNames(set: PolicySet): readonly string[] {
  const names = KNOWN.filter((each) => (set & (1 << each)) !== 0).map((each) => NAMES[each]);
  return [...new Set(names)];
}

/** Returns what people read about work that waits for a runner that keeps what it needs, or has waited too long. */
export function waitMessage(needs: PolicySet): string {
  const names = policyNames(needs).join(", ");
  return (
    `no runner that is connected, and may take the work, keeps all of ${names}: ` +
    "connect one that does, such as the built-in one with isolation, or change what demands it"
  );
}
