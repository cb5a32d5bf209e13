import type { Policies } from "#gen/runner/v1/work_pb.js";
import {
  KernelControlsAction as Action,
  VetoFileSurface as Surface,
} from "#gen/service/v1/environment_pb.js";
import { SecurityPolicy_Effect as Effect } from "#gen/service/v1/security_pb.js";

/** A lease's policy, which its runner can or cannot enforce. */
export interface PolicyNeed {
  /** False for a policy that is disabled or covers nothing. */
  readonly applies: boolean;
  /** True if denying paths enforces it. */
  readonly isByPath: boolean;
}

/** A policy that denies paths or names. */
export interface PathNeed extends PolicyNeed {
  readonly paths: readonly string[];
}

/** Returns the programs that policies deny by path or name. Omits policies that no list can enforce. */
export function executablesOf({ vetoExecPolicy, securityPolicy }: Policies): {
  readonly vetoExecPolicy: PathNeed;
  readonly securityPolicy: PathNeed;
} {
  const veto = vetoExecPolicy?.enabled ? vetoExecPolicy : undefined;
  const rules = securityPolicy?.spec?.executables?.rules ?? [];
  const seen = new Set<string>();
  // Of several rules for one program the first applies.
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

/** Returns the files that a policy denies, or makes read-only. */
export function filesOf({ vetoFilePolicy: veto }: Policies): PolicyNeed & {
  readonly denied: readonly string[];
  readonly readOnly: readonly string[];
} {
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
      // A sandbox has no block devices and cannot create them.
      isBlock(devices?.action),
    denied: ofSurface(Surface.ACCESS),
    readOnly: ofSurface(Surface.CONTENT_MUTATION),
  };
}

function isBlock(action: Action = Action.UNSPECIFIED): boolean {
  return action === Action.UNSPECIFIED || action === Action.BLOCK;
}
