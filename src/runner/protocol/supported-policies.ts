import type { Policies } from "#gen/runner/v1/work_pb.js";
import { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { SAFELIST } from "../../domain/policy/policies.ts";
import {
  neededByPolicies,
  policiesWithout,
  policyNames,
  policySet,
} from "../../domain/runner/kept-policies.ts";
import { executablesOf, filesOf } from "../../domain/runner/path-policies.ts";
import type { Isolation } from "../isolation/isolation.ts";
import { NO_RULES, type PathRules } from "../isolation/path-rules.ts";
import { WorkFailure } from "./work-failure.ts";

/** Returns the policies that this runner enforces with an isolation class, for the service. */
export function supportedPolicies({
  name,
  keepsRules,
}: Pick<Isolation, "name" | "keepsRules">): RunnerPolicy[] {
  if (name === "container") {
    return [
      RunnerPolicy.ENVIRONMENT_IMAGE,
      RunnerPolicy.EGRESS,
      RunnerPolicy.FORK_WORK,
      RunnerPolicy.FORK_EGRESS,
    ];
  }
  if (!keepsRules) return [RunnerPolicy.FORK_WORK];
  return [
    RunnerPolicy.VETO_EXEC,
    RunnerPolicy.VETO_FILE,
    RunnerPolicy.SECURITY_POLICY,
    RunnerPolicy.EGRESS,
    RunnerPolicy.FORK_WORK,
    RunnerPolicy.FORK_EGRESS,
  ];
}

/**
 * Returns the rules about files from a work's policies, for a class that enforces them. Throws when the environment
 * has policies that this runner cannot enforce: no class watches what commands do, and only containers run them in an
 * image. Any runner supports a policy that is switched off or covers nothing.
 *
 * @throws WorkFailure policy_unsupported, naming the policies
 */
export function requireSupportedPolicies(
  policies: Policies | undefined,
  { name, keepsRules }: Pick<Isolation, "name" | "keepsRules">,
): PathRules {
  if (!policies) return NO_RULES;
  const kept = policySet(supportedPolicies({ name, keepsRules }));
  // The code that opens the network reports which egress rules it cannot enforce.
  const unkept = policiesWithout(neededByPolicies({ ...policies, egress: undefined }), kept);
  if (unkept !== 0) {
    const how =
      name === "container"
        ? "runs commands in containers"
        : keepsRules
          ? `denies what policies name by path, in the class ${name},`
          : "runs commands in plain folders";
    throw new WorkFailure(
      "policy_unsupported",
      `this runner ${how} and cannot keep ${policyNames(unkept).join(", ")}: ` +
        "let a runner do the work that can, or change the organization's policies",
    );
  }
  const { vetoExecPolicy, securityPolicy } = executablesOf(policies);
  const vetoFilePolicy = filesOf(policies);
  return {
    executables: [...vetoExecPolicy.paths, ...securityPolicy.paths],
    denied: vetoFilePolicy.denied,
    readOnly: vetoFilePolicy.readOnly,
  };
}

/** A command in a policy's list for agents: the name or path of a program, without arguments. */
const PROGRAM = /^(\/[^\s]+|[^\s/]+)$/;

/**
 * Returns the rules about files for an agent like {@link requireSupportedPolicies}, plus the programs that agents
 * must not start. Only the agent's own program can enforce rules about arguments.
 *
 * @throws WorkFailure policy_unsupported
 */
export function rulesForAgents(
  policies: Policies | undefined,
  isolation: Pick<Isolation, "name" | "keepsRules">,
): PathRules {
  const rules = requireSupportedPolicies(policies, isolation);
  const commands = (policies?.agentPolicy?.commandDenyList ?? []).map((each) => each.trim());
  const named = commands.filter((each) => PROGRAM.test(each) && !SAFELIST.includes(each));
  return { ...rules, executables: [...rules.executables, ...named] };
}
