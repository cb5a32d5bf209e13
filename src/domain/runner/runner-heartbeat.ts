import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Runner,
  type RunnerIsolation,
  RunnerPhase,
  RunnerSchema,
  type RunnerStatus,
  RunnerStatusSchema,
} from "#gen/service/v1/runner_pb.js";
import { inUse, phaseUnsuitable } from "../error.ts";
import { keptPoliciesOf, type PolicySet, supportedPoliciesOf } from "./kept-policies.ts";

/**
 * Time without a heartbeat after which a runner is shown as inactive (contract,
 * WorkService.Heartbeat).
 */
export const INACTIVE_AFTER_MS = 90_000;

/** Interval at which a runner is asked to call: two calls in a row may be lost before it counts as inactive. */
export const HEARTBEAT_INTERVAL_MS = INACTIVE_AFTER_MS / 3;

/**
 * Time without a heartbeat after which an instance of a runner no longer counts as alive (contract,
 * WorkService.BeginInstance): three calls of the built-in runner, which calls twice as often as asked.
 */
const INSTANCE_LIVES_MS = 1.5 * HEARTBEAT_INTERVAL_MS;

/** Validity of a runner's own token. */
export const RUNNER_TOKEN_VALID_MS = 365 * 24 * 3600 * 1000;

/** How a runner describes itself when it registers. */
export interface RunnerRegistration {
  readonly version: string;
  readonly systemDetails: string;
  /** Unspecified when the runner does not report it. */
  readonly isolation?: RunnerIsolation;
  /** True when it takes agents that the API defines; undefined when it does not report it. */
  readonly apiAgents?: boolean | undefined;
  /** The set of policies that it supports; null when it does not report it. */
  readonly keptPolicies?: PolicySet | null;
}

/** Returns the runner as one that has just connected. */
export function registeredRunner(present: Runner, reported: RunnerRegistration, now: number): Runner {
  const { version, systemDetails, ...rest } = reported;
  const said = { version, systemDetails, phase: RunnerPhase.ACTIVE, message: "" };
  return withStatus(present, { ...said, ...abilities(rest) }, now);
}

/** A later update of a runner's description. An absent reason keeps the known one. */
export interface RunnerUpdate {
  /** Empty means unchanged. */
  readonly version?: string;
  /** Reason why part of its work cannot be done; empty for none. */
  readonly degradedReason?: string;
  /** Unspecified means unchanged. */
  readonly isolation?: RunnerIsolation;
  /** Undefined means unchanged. */
  readonly apiAgents?: boolean | undefined;
  /** The set of policies that it supports; null when it no longer reports it. Undefined means unchanged. */
  readonly keptPolicies?: PolicySet | null | undefined;
}

/** Returns the reported isolation, agents and policies, without absent ones. */
function abilities({
  isolation,
  apiAgents,
  keptPolicies,
}: Pick<RunnerUpdate, "isolation" | "apiAgents" | "keptPolicies">) {
  return {
    ...(isolation && { isolation }),
    ...(apiAgents !== undefined && { apiAgents }),
    ...(keptPolicies !== undefined && { keptPolicies: keptPoliciesOf(keptPolicies) }),
  };
}

/** Returns the runner after a heartbeat; undefined when nothing about it has changed. */
export function connectedRunner(
  present: Runner,
  { version, degradedReason, isolation, apiAgents, keptPolicies }: RunnerUpdate,
  now: number,
): Runner | undefined {
  const known = present.status ?? create(RunnerStatusSchema);
  const isDegraded =
    degradedReason === undefined ? known.phase === RunnerPhase.DEGRADED : degradedReason !== "";
  const status = {
    version: version || known.version,
    phase: isDegraded ? RunnerPhase.DEGRADED : RunnerPhase.ACTIVE,
    message: isDegraded ? (degradedReason ?? known.message) : "",
    ...abilities({ ...(isolation && { isolation }), apiAgents, keptPolicies }),
  };
  const isUnchanged =
    status.version === known.version &&
    status.phase === known.phase &&
    status.message === known.message &&
    (!isolation || isolation === known.isolation) &&
    (apiAgents === undefined || apiAgents === known.apiAgents) &&
    (keptPolicies === undefined || keptPolicies === supportedPoliciesOf(known.keptPolicies));
  return isUnchanged ? undefined : withStatus(present, status, now);
}

/** Returns the runner as inactive after it was silent for too long. */
export function inactiveRunner(present: Runner, now: number): Runner {
  const message = `the runner has not reported for ${INACTIVE_AFTER_MS / 1000} seconds`;
  return withStatus(present, { phase: RunnerPhase.INACTIVE, message }, now);
}

/** Returns whether the runner should get work. */
export function isAvailable({ spec }: Runner): boolean {
  return spec?.desiredPhase === RunnerPhase.ACTIVE;
}

function withStatus(present: Runner, changes: Partial<RunnerStatus>, now: number): Runner {
  const runner = clone(RunnerSchema, present);
  runner.status ??= create(RunnerStatusSchema);
  Object.assign(runner.status, changes, { updatedAt: timestampFromMs(now) });
  return runner;
}

/** Requires that a runner takes work. @throws DomainError PHASE_UNSUITABLE */
export function requireRunnerAvailable(runner: Runner): void {
  if (isAvailable(runner)) return;
  throw phaseUnsuitable("runner", "INACTIVE", "the runner accepts no work: name another, or none");
}

/** The most recent instance of a runner. */
export interface RunnerInstance {
  /** Null for a runner whose programs do not name an instance. */
  readonly instanceId: string | null;
  /** Time of its last sign of life, in milliseconds since 1970 UTC. */
  readonly instanceSeenAt: number | null;
}

/** Requires that no other instance of a runner is alive. @throws DomainError IN_USE */
export function requireNoOtherInstance(
  { instanceId, instanceSeenAt }: RunnerInstance,
  beginning: string,
  now: number,
): void {
  if (instanceId === null || instanceId === beginning) return;
  if (now - (instanceSeenAt ?? 0) >= INSTANCE_LIVES_MS) return;
  throw instanceReplaced(instanceId);
}

/** Requires that no other instance of a runner has begun since. @throws DomainError IN_USE */
export function requireCurrentInstance({ instanceId }: RunnerInstance, calling: string): void {
  if (isCurrentInstance({ instanceId }, calling)) return;
  throw instanceReplaced(instanceId ?? "");
}

/** Returns whether an instance, or a program that names none, may lease work for a runner. */
export function isCurrentInstance(
  { instanceId }: Pick<RunnerInstance, "instanceId">,
  calling: string,
): boolean {
  return calling === "" || calling === instanceId;
}

function instanceReplaced(instanceId: string) {
  return inUse(
    "runner",
    `instance ${instanceId}`,
    "another instance of this runner is running: stop it, or create another runner for this one",
  );
}
