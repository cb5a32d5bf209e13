import { clone, create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Environment,
  EnvironmentSchema,
  EnvironmentStatusSchema,
  EnvironmentPhase as Phase,
} from "#gen/service/v1/environment_pb.js";
import { phaseUnsuitable } from "../error.ts";
import { isStopped } from "./environment.ts";

/** Maximum number of failures that are kept of an environment; the oldest are dropped. */
const MAX_FAILURES = 10;

/**
 * The phases that a runner may report after each phase. A phase may be reported again, and a new
 * attempt may repeat what a lost attempt had begun; an environment never returns from its deletion.
 */
const TRANSITIONS: Readonly<Record<Phase, readonly Phase[]>> = {
  [Phase.UNSPECIFIED]: [],
  [Phase.CREATING]: [Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.STOPPED],
  [Phase.STARTING]: [Phase.CREATING, Phase.RUNNING, Phase.STOPPING, Phase.STOPPED],
  [Phase.RUNNING]: [Phase.UPDATING, Phase.STOPPING, Phase.STOPPED],
  [Phase.UPDATING]: [Phase.RUNNING, Phase.STOPPING, Phase.STOPPED],
  [Phase.STOPPING]: [Phase.STARTING, Phase.RUNNING, Phase.STOPPED],
  [Phase.STOPPED]: [Phase.STARTING, Phase.RUNNING],
  [Phase.DELETING]: [],
  [Phase.DELETED]: [],
};
const ENDING: readonly Phase[] = [Phase.DELETING, Phase.DELETED];

/**
 * Returns whether a runner has to bring the environment to its desired phase. The environment of an
 * action is managed by that action until it is released.
 */
export function needsWork(environment: Environment): boolean {
  const wanted = environment.spec?.desiredPhase;
  const phase = environment.status?.phase;
  if (wanted === Phase.DELETED) return phase !== Phase.DELETED;
  if (environment.spec?.workflowActionId) return false;
  if (wanted === Phase.STOPPED) return !isStopped(environment);
  return wanted === Phase.RUNNING && phase !== Phase.RUNNING;
}

/** Returns whether the environment is being started for the first time. */
export function isBeingCreated({ status }: Environment): boolean {
  return status?.phase === Phase.CREATING || status?.phase === Phase.STARTING;
}

/**
 * Returns the environment after a runner has leased it: it is bound to that runner, which may begin
 * work at any time from now on.
 */
export function assignedEnvironment(present: Environment, runnerId: string): Environment {
  const { metadata } = present;
  const environment = raiseVersion({
    ...withOwnStatus(present),
    ...(metadata && { metadata: { ...metadata, runnerId } }),
  });
  // It no longer waits for a runner.
  environment.status.warningMessage = [];
  return environment;
}

/** Returns the environment with a warning that it waits; undefined when it already has that warning. */
export function waitingEnvironment(present: Environment, warning: string): Environment | undefined {
  if (present.status?.warningMessage.at(-1) === warning) return undefined;
  const environment = raiseVersion(withOwnStatus(present));
  environment.status.warningMessage = [warning];
  return environment;
}

/** A runner's report about an environment. */
export interface PhaseReport {
  /** Unspecified means unchanged. */
  readonly phase: Phase;
  /** Empty for none. */
  readonly failureMessage: string;
}

/**
 * Returns the environment after a report; undefined when the report changes nothing.
 * @throws DomainError PHASE_UNSUITABLE for a phase that cannot follow the present one
 */
export function reportedEnvironment(
  present: Environment,
  { phase, failureMessage }: PhaseReport,
): Environment | undefined {
  const status = present.status ?? create(EnvironmentStatusSchema);
  const isTransition = phase !== Phase.UNSPECIFIED && phase !== status.phase;
  if (isTransition) requireTransition(status.phase, phase, present.spec?.desiredPhase ?? Phase.UNSPECIFIED);
  const isFailure = failureMessage !== "" && status.failureMessage.at(-1) !== failureMessage;
  if (!isTransition && !isFailure) return undefined;
  const environment = raiseVersion(withOwnStatus(present));
  if (isTransition) environment.status.phase = phase;
  if (isFailure) addFailure(environment.status, failureMessage);
  // Earlier failures are resolved once the environment is up.
  else if (phase === Phase.RUNNING) environment.status.failureMessage = [];
  return environment;
}

/** Returns the environment in its desired phase. */
export function completedEnvironment(present: Environment): Environment {
  const wanted = present.spec?.desiredPhase ?? Phase.UNSPECIFIED;
  return reportedEnvironment(present, { phase: wanted, failureMessage: "" }) ?? present;
}

/**
 * Returns an environment that could not be brought up: it is stopped, and its desired phase becomes
 * stopped, since a runner would otherwise retry forever.
 */
export function failedEnvironment(present: Environment, failureMessage: string): Environment {
  const environment = raiseVersion(clone(EnvironmentSchema, present));
  addFailure(environment.status, failureMessage);
  environment.status.phase = Phase.STOPPED;
  if (environment.spec) {
    environment.spec.desiredPhase = Phase.STOPPED;
    environment.spec.specVersion += 1n;
  }
  return environment;
}

/**
 * Returns the environment of a lost attempt: it no longer belongs to an execution and is to be
 * cleaned up.
 */
export function orphanedEnvironment(present: Environment): Environment {
  const environment = raiseVersion(clone(EnvironmentSchema, present));
  environment.status.phase = Phase.DELETING;
  if (environment.spec && environment.spec.desiredPhase !== Phase.DELETED) {
    environment.spec.desiredPhase = Phase.DELETED;
    environment.spec.specVersion += 1n;
  }
  return environment;
}

/**
 * Returns the environment of an action that waits for people: it is stopped, its runner keeps its files, and nothing
 * can start in it until the action continues.
 */
export function pausedEnvironment(present: Environment): Environment {
  return inPhase(present, Phase.STOPPED);
}

/** Returns the environment of an action that continues after an approval. */
export function resumedEnvironment(present: Environment): Environment {
  const environment = inPhase(present, Phase.RUNNING);
  delete environment.metadata?.archivedAt;
  return environment;
}

/** Returns whether the stopped environment of an action is still kept, so that the action can continue in it. */
export function isPaused({ metadata, spec, status }: Environment, now: number): boolean {
  const isOver = metadata?.lockdownAt !== undefined && timestampMs(metadata.lockdownAt) <= now;
  return spec?.desiredPhase === Phase.STOPPED && status?.phase === Phase.STOPPED && !isOver;
}

function inPhase(present: Environment, phase: Phase): Environment {
  const environment = raiseVersion(clone(EnvironmentSchema, present));
  environment.status.phase = phase;
  if (environment.spec) {
    environment.spec.desiredPhase = phase;
    environment.spec.specVersion += 1n;
  }
  return environment;
}

/** Returns a copy of an environment whose status may be changed; it shares the rest with the present one. */
function withOwnStatus(present: Environment): Environment {
  return { ...present, ...(present.status && { status: { ...present.status } }) };
}

function requireTransition(from: Phase, to: Phase, wanted: Phase): void {
  const [name, next] = [Phase[from] ?? String(from), Phase[to] ?? String(to)];
  const isEnding = ENDING.includes(to);
  if (isEnding && wanted !== Phase.DELETED) {
    throw phaseUnsuitable("environment", name, "nobody has asked to delete the environment: keep it");
  }
  if (isEnding ? from !== Phase.DELETED : TRANSITIONS[from].includes(to)) return;
  throw phaseUnsuitable("environment", name, `an environment cannot change from ${name} to ${next}`);
}

type WithStatus = Environment & { status: NonNullable<Environment["status"]> };

function raiseVersion(environment: Environment): WithStatus {
  environment.status ??= create(EnvironmentStatusSchema);
  environment.status.statusVersion += 1n;
  return environment as WithStatus;
}

function addFailure(status: WithStatus["status"], message: string): void {
  status.failureMessage = [...status.failureMessage, message].slice(-MAX_FAILURES);
}
