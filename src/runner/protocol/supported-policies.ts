import type { Policies } from "#gen/runner/v1/work_pb.js";
import {
  KernelControlsAction as Action,
  VetoFileSurface as Surface,
} from "#gen/service/v1/environment_pb.js";
import { SecurityPolicy_Effect as Effect } from "#gen/service/v1/security_pb.js";
import { SAFELIST } from "../../domain/policy/policies.ts";
import type { Isolation } from "../isolation/isolation.ts";
import { NO_RULES, type PathRules } from "../isolation/path-rules.ts";
import { WorkFailure } from "./work-failure.ts";

/**
 * Returns the rules about files that a work's policies make, for a class that keeps those. Throws when policies apply in
 * the environment that this runner cannot enforce: no class watches what commands do, and none runs them in an image. A
 * policy that is switched off, or covers nothing, is supported by any runner.
 *
 * @throws WorkFailure policy_unsupported, naming them
 */
export function requireSupportedPolicies(
  policies: Policies | undefined,
  { name, keepsRules }: Pick<Isolation, "name" | "keepsRules">,
): PathRules {
  if (!policies) return NO_RULES;
  const { vetoExecPolicy, securityPolicy } = executablesOf(policies);
  const vetoFilePolicy = filesOf(policies);
  const needs: Readonly<Record<string, Need>> = {
    vetoExecPolicy,
    vetoFilePolicy,
    securityPolicyId: securityPolicy,
  };
  const unkept = Object.entries(needs).flatMap(([policy, { applies, isByPath }]) =>
    applies && !(keepsRules && isByPath) ? [policy] : [],
  );
  const unsupported = [...unkept, ...others(policies)];
  if (unsupported.length > 0) {
    const how = keepsRules
      ? `denies what policies name by path, in the class ${name},`
      : "runs commands in plain folders";
    throw new WorkFailure(
      "policy_unsupported",
      `this runner ${how} and cannot keep ${unsupported.join(", ")}: ` +
        "let a runner do the work that can, or change the organization's policies",
    );
  }
  return {
    executables: [...vetoExecPolicy.paths, ...securityPolicy.paths],
    denied: vetoFilePolicy.denied,
    readOnly: vetoFilePolicy.readOnly,
  };
}

/** Needs of a policy of a runner. */
interface Need {
  readonly applies: boolean;
  /** True if it is kept by denying paths. */
  readonly isByPath: boolean;
}

/** Returns the programs that policies deny by their paths or names, without those that no list can deny. */
function executablesOf({ vetoExecPolicy, securityPolicy }: Policies) {
  const veto = vetoExecPolicy?.enabled ? vetoExecPolicy : undefined;
  const rules = securityPolicy?.spec?.executables?.rules ?? [];
  const seen = new Set<string>();
  // Of several rules for one program the first holds.
  const first = rules.filter(({ path }) => !seen.has(path) && seen.add(path));
  return {
    vetoExecPolicy: {
      applies: (veto?.executables.length ?? 0) > 0,
      isByPath: isBlock(veto?.action),
      paths: (veto?.executables ?? []).filter((each) => !veto?.safelist.includes(each)),
    },
    securityPolicy: {
      applies: rules.length > 0,
      isByPath: first.every(({ effect }) => effect === Effect.BLOCK),
      paths: first.map(({ path }) => path),
    },
  };
}

function filesOf({ vetoFilePolicy: veto }: Policies): Need & Omit<PathRules, "executables"> {
  const entries = veto?.enabled ? (veto.paths?.entries ?? []) : [];
  const devices = veto?.enabled && veto.blockDevices?.enabled ? veto.blockDevices : undefined;
  const { defaultSurface = Surface.UNSPECIFIED, defaultEffect = Action.UNSPECIFIED } = veto?.paths ?? {};
  const rules = entries.map(({ path, surface, effect, trackChanges }) => ({
    path,
    surface: surface || defaultSurface || Surface.ACCESS,
    isByPath: path.startsWith("/") && path !== "/" && isBlock(effect || defaultEffect) && !trackChanges,
  }));
  const ofSurface = (wanted: Surface) =>
    rules.filter(({ surface }) => surface === wanted).map(({ path }) => path);
  return {
    applies: rules.length > 0 || devices !== undefined,
    isByPath:
      rules.every((rule) => rule.isByPath && rule.surface !== Surface.CONTENT_READ) &&
      // A sandbox has no block devices, and makes none.
      isBlock(devices?.action),
    denied: ofSurface(Surface.ACCESS),
    readOnly: ofSurface(Surface.CONTENT_MUTATION),
  };
}

function isBlock(action: Action = Action.UNSPECIFIED): boolean {
  return action === Action.UNSPECIFIED || action === Action.BLOCK;
}

/** Returns the policies that no class of this runner keeps. */
function others({ securityAgentPolicy, defaultEnvironmentImage }: Policies): readonly string[] {
  const { endpointSecurity, customAgents = [] } = securityAgentPolicy ?? {};
  const applies = {
    securityAgentPolicy: endpointSecurity?.enabled || customAgents.some(({ enabled }) => enabled),
    defaultEnvironmentImage: defaultEnvironmentImage !== "",
  };
  return Object.entries(applies).flatMap(([name, isBinding]) => (isBinding ? [name] : []));
}

/** A command of a list for agents that is the name or the path of a program, without arguments. */
const PROGRAM = /^(\/[^\s]+|[^\s/]+)$/;

/**
 * Returns the rules about files for an agent, as {@link requireSupportedPolicies} does, with the programs that agents must
 * not start. What their list says about arguments only the agent's own program can keep.
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
