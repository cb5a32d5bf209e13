import { clone, create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AdmissionLevel,
  AdmissionLevelSchema,
  type Environment,
  type EnvironmentSpec,
  EnvironmentSpec_TimeoutSchema,
  EnvironmentSpecSchema,
} from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../identity/caller.ts";
import type { Policies } from "../policy/policies.ts";
import { policyDenied } from "../policy/policy-decision.ts";
import { isLimit, limitMs } from "../policy/policy-limit.ts";

/** Facts about a new environment that the policies check besides its spec. */
export interface NewEnvironmentFacts {
  readonly role: Caller["role"];
  /** True when it is created from a project. */
  readonly fromProject: boolean;
  /** True when it goes to a runner on a member's own machine. */
  readonly local: boolean;
}

/**
 * Returns the spec of a new environment with the values that the policies add: the maximum timeout
 * where it has none, and the organization's security policy.
 * @throws PolicyDenied by the first policy that forbids it
 */
export function applyPoliciesToSpec(
  policies: Policies,
  requested: EnvironmentSpec | undefined,
  { role, fromProject, local }: NewEnvironmentFacts,
): EnvironmentSpec {
  const spec = requested ? clone(EnvironmentSpecSchema, requested) : create(EnvironmentSpecSchema);
  const { effective } = policies;
  const isFree = role === "administrator";
  if (effective.membersRequireProjects && !fromProject && !isFree) {
    const allowed = "members to create environments from projects only";
    throw policyDenied(policies, { fieldPath: "membersRequireProjects", allowed });
  }
  if (effective.disableFromScratch && !isFree && !spec.content?.initializer?.specs.length) {
    const allowed = "members to create environments with a git or URL initializer only";
    throw policyDenied(policies, { fieldPath: "disableFromScratch", allowed });
  }
  if (!effective.allowLocalRunners && local) {
    const allowed = "environments on runners that are not local";
    throw policyDenied(policies, { fieldPath: "allowLocalRunners", requested: true, allowed });
  }
  requireAdmissionAllowed(policies, spec.admission);
  limitTimeout(policies, spec);
  assignSecurityPolicy(policies, spec);
  return spec;
}

/** Sets the end of a new environment's lifetime, where the organization limits lifetimes. */
export function withLifetime({ effective }: Policies, environment: Environment): Environment {
  const lifetime = limitMs(effective.maximumEnvironmentLifetime);
  const { metadata } = environment;
  if (lifetime !== undefined && metadata?.createdAt) {
    metadata.lockdownAt = timestampFromMs(timestampMs(metadata.createdAt) + lifetime);
  }
  return environment;
}

/**
 * Requires that an environment is not started after the end of its lifetime; `now` in milliseconds
 * since 1970 UTC.
 * @throws PolicyDenied from the end of a strict lifetime on
 */
export function requireLifetimeAllowsStart(policies: Policies, { metadata }: Environment, now: number): void {
  if (!policies.effective.maximumEnvironmentLifetimeStrict || !metadata?.lockdownAt) return;
  if (now < timestampMs(metadata.lockdownAt)) return;
  const fieldPath = "maximumEnvironmentLifetimeStrict";
  throw policyDenied(policies, { fieldPath, allowed: "starts until the lockdownAt of an environment only" });
}

/** Returns whether the lifetime has ended without a start since. */
export function isPastLifetime({ metadata }: Environment, now: number): boolean {
  if (!metadata?.lockdownAt) return false;
  const end = timestampMs(metadata.lockdownAt);
  return now >= end && (!metadata.lastStartedAt || timestampMs(metadata.lastStartedAt) < end);
}

/** Rank of each level by how many people it admits; an unspecified level admits only the creator. */
const OPENNESS: Readonly<Record<AdmissionLevel, number>> = {
  [AdmissionLevel.UNSPECIFIED]: 0,
  [AdmissionLevel.OWNER_ONLY]: 0,
  [AdmissionLevel.CREATOR_ONLY]: 0,
  [AdmissionLevel.ORGANIZATION]: 1,
  [AdmissionLevel.EVERYONE]: 2,
};

/**
 * Requires that a user opens an environment no further than the organization's maximum. Ports that
 * the system opens are not checked.
 * @throws PolicyDenied
 */
export function requireAdmissionAllowed(policies: Policies, level: AdmissionLevel): void {
  const { portSharingDisabled, maxPortAdmissionLevel: max } = policies.effective;
  if (OPENNESS[level] === 0) return;
  const requested = levelName(level);
  if (portSharingDisabled) {
    const allowed = `only ${levelName(AdmissionLevel.CREATOR_ONLY)}`;
    throw policyDenied(policies, { fieldPath: "portSharingDisabled", requested, allowed });
  }
  if (max === AdmissionLevel.UNSPECIFIED || OPENNESS[level] <= OPENNESS[max]) return;
  throw policyDenied(policies, {
    fieldPath: "maxPortAdmissionLevel",
    requested,
    allowed: `at most ${levelName(max)}`,
  });
}

function limitTimeout(policies: Policies, spec: EnvironmentSpec): void {
  const max = policies.effective.maximumEnvironmentTimeout;
  if (!isLimit(max)) return;
  spec.timeout ??= create(EnvironmentSpec_TimeoutSchema);
  spec.timeout.disconnected ??= max;
  requireTimeoutAllowed(policies, spec.timeout.disconnected);
}

/** Requires that a timeout is at most the organization's maximum. @throws PolicyDenied */
export function requireTimeoutAllowed(policies: Policies, requested: Duration): void {
  const max = policies.effective.maximumEnvironmentTimeout;
  if (!isLimit(max)) return;
  // An environment with a timeout of 0 s is never stopped for being idle, which is longer than any
  // limit.
  if (isLimit(requested) && compare(requested, max) <= 0) return;
  throw policyDenied(policies, {
    fieldPath: "maximumEnvironmentTimeout",
    requested: toJson(DurationSchema, requested),
    allowed: `a timeout of at most ${toJson(DurationSchema, max)}`,
  });
}

function assignSecurityPolicy(policies: Policies, spec: EnvironmentSpec): void {
  const assigned = policies.effective.securityPolicyId;
  if (assigned === "") return;
  spec.securityPolicyId ||= assigned;
  if (spec.securityPolicyId === assigned) return;
  const requested = spec.securityPolicyId;
  throw policyDenied(policies, { fieldPath: "securityPolicyId", requested, allowed: `only ${assigned}` });
}

function levelName(level: AdmissionLevel): JsonValue {
  return AdmissionLevelSchema.value[level]?.name ?? level;
}

function compare(one: Duration, other: Duration): number {
  return Number(one.seconds - other.seconds) || one.nanos - other.nanos;
}
