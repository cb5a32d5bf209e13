import { create } from "@bufbuild/protobuf";
import type { Policies } from "#gen/runner/v1/work_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ForkEgress } from "#gen/service/v1/fork_work_pb.js";
import { type KeptPolicies, KeptPoliciesSchema, RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { isWithheld } from "../policy/work-secrets.ts";
import { executablesOf, filesOf, type PolicyNeed } from "./path-policies.ts";

/** A set of policies, one bit each, as rows store it. */
export type PolicySet = number;

/** The names that people know the policies by, from the organization's policies and from triggers. */
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

/** All policies, including those of later releases that rows may hold. */
export const EVERY_POLICY: PolicySet = 0x7fff_ffff;

/** Returns policies as a set. Omits policies that this release does not know. */
export function policySet(policies: readonly RunnerPolicy[]): PolicySet {
  return KNOWN.filter((each) => policies.includes(each)).reduce((set, each) => set | (1 << each), 0);
}

/**
 * The policies offered to a runner that does not report its own. It is of an earlier release, which fails work whose
 * policies it cannot enforce. Those releases do not know about pull requests from forks.
 */
const UNSAID: PolicySet = policySet(
  KNOWN.filter((each) => each !== RunnerPolicy.FORK_WORK && each !== RunnerPolicy.FORK_EGRESS),
);

/** Returns the set of policies that a runner reports; null when it reports none. */
export function supportedPoliciesOf(said: KeptPolicies | undefined): PolicySet | null {
  return said ? policySet(said.policies) : null;
}

/** Returns a set as runners report it; undefined for a runner that reports none. */
export function keptPoliciesOf(said: PolicySet | null): KeptPolicies | undefined {
  if (said === null) return undefined;
  return create(KeptPoliciesSchema, { policies: KNOWN.filter((each) => (said & (1 << each)) !== 0) });
}

/** Returns the policies that work for a runner may have. @param said null when the runner reports none */
export function offeredTo(said: PolicySet | null): PolicySet {
  return said ?? UNSAID;
}

/** Returns the policies of a set that are not in another. */
export function policiesWithout(set: PolicySet, kept: PolicySet): PolicySet {
  return set & ~kept;
}

/** Returns the policies that a lease requires its runner to support. */
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
 * Returns the policies that work in an environment requires its runner to support; none when the environment is to
 * stop. Work that prepares workspaces has no environment, runs no commands and requires none.
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

/** Returns the names of the policies of a set, without duplicates. */
export function policyNames(set: PolicySet): readonly string[] {
  const names = KNOWN.filter((each) => (set & (1 << each)) !== 0).map((each) => NAMES[each]);
  return [...new Set(names)];
}

/**
 * Returns the message for people about work that waits, or has waited too long, for a runner that supports its
 * policies.
 */
export function waitMessage(needs: PolicySet): string {
  const names = policyNames(needs).join(", ");
  return (
    `no runner that is connected, and may take the work, keeps all of ${names}: ` +
    "connect one that does, such as the built-in one with isolation, or change what demands it"
  );
}
