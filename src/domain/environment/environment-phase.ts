import { clone, create } from "@bufbuild/protobuf";
import {
  type Environment,
  EnvironmentPhaseSchema,
  EnvironmentSchema,
  EnvironmentStatusSchema,
  EnvironmentPhase as Phase,
} from "#gen/service/v1/environment_pb.js";
import { phaseUnsuitable } from "../error.ts";
import { isStopped } from "./environment.ts";

/** Failures that are kept of an environment; older ones make room. */
const MOST_FAILURES = 10;

/**
 * The phases that a runner may report after each. A phase may be reported again,
 * and what a lost attempt had begun may begin anew; from the way to its deletion
 * no environment comes back.
 */
const MOVES: Readonly<Record<Phase, readonly Phase[]>> = {
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
 * Whether a runner has to bring the environment to the phase that is wanted of
 * it. The environment of an action is led by that action, until it is let go.
 */
export function needsWork(environment: Environment): boolean {
  const wanted = environment.spec?.desiredPhase;
  const phase = environment.status?.phase;
  if (wanted === Phase.DELETED) return phase !== Phase.DELETED;
  if (environment.spec?.workflowActionId) return false;
  if (wanted === Phase.STOPPED) return !isStopped(environment);
  return wanted === Phase.RUNNING && phase !== Phase.RUNNING;
}

/** The environment once a runner has a lease on it: it is bound to the runner, which may have begun from now on. */
export function assigned(present: Environment, runnerId: string): Environment {
  const environment = clone(EnvironmentSchema, present);
  if (environment.metadata) environment.metadata.runnerId = runnerId;
  raiseVersion(environment);
  return environment;
}

/** What a runner says about an environment. */
export interface PhaseReport {
  /** Unspecified: no other than before. */
  readonly phase: Phase;
  /** Empty for nothing. */
  readonly failureMessage: string;
}

/**
 * The environment after a report; undefined when the report tells nothing new.
 *
 * @throws DomainError PHASE_UNSUITABLE for a phase that cannot follow the present one
 */
export function reportedEnvironment(
  present: Environment,
  { phase, failureMessage }: PhaseReport,
): Environment | undefined {
  const status = present.status ?? create(EnvironmentStatusSchema);
  const isMove = phase !== Phase.UNSPECIFIED && phase !== status.phase;
  if (isMove) requireTransition(status.phase, phase, present.spec?.desiredPhase ?? Phase.UNSPECIFIED);
  const isFailure = failureMessage !== "" && status.failureMessage.at(-1) !== failureMessage;
  if (!isMove && !isFailure) return undefined;
  const environment = raiseVersion(clone(EnvironmentSchema, present));
  if (isMove) environment.status.phase = phase;
  if (isFailure) addFailure(environment.status, failureMessage);
  // What went wrong before has been overcome once the environment is up.
  else if (phase === Phase.RUNNING) environment.status.failureMessage = [];
  return environment;
}

/** The environment that is in the phase wanted of it. */
export function completed(present: Environment): Environment {
  const wanted = present.spec?.desiredPhase ?? Phase.UNSPECIFIED;
  return reportedEnvironment(present, { phase: wanted, failureMessage: "" }) ?? present;
}

/**
 * The environment that could not be brought up: it is stopped, and wanted so
 * from now on, since a runner would try in vain again and again otherwise.
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

/** The environment of an attempt that was lost: it runs for nobody any more and is to be cleaned up. */
export function orphanedEnvironment(present: Environment): Environment {
  const environment = raiseVersion(clone(EnvironmentSchema, present));
  environment.status.phase = Phase.DELETING;
  if (environment.spec && environment.spec.desiredPhase !== Phase.DELETED) {
    environment.spec.desiredPhase = Phase.DELETED;
    environment.spec.specVersion += 1n;
  }
  return environment;
}

function requireTransition(from: Phase, to: Phase, wanted: Phase): void {
  const name = EnvironmentPhaseSchema.value[from]?.name ?? String(from);
  const next = EnvironmentPhaseSchema.value[to]?.name ?? String(to);
  const isEnding = ENDING.includes(to);
  if (isEnding && wanted !== Phase.DELETED) {
    throw phaseUnsuitable("environment", name, "the environment is not wanted deleted: keep it");
  }
  if (isEnding ? from !== Phase.DELETED : MOVES[from].includes(to)) return;
  throw phaseUnsuitable("environment", name, `an environment does not come from ${name} to ${next}`);
}

type WithStatus = Environment & { status: NonNullable<Environment["status"]> };

function raiseVersion(environment: Environment): WithStatus {
  environment.status ??= create(EnvironmentStatusSchema);
  environment.status.statusVersion += 1n;
  return environment as WithStatus;
}

function addFailure(status: WithStatus["status"], message: string): void {
  status.failureMessage = [...status.failureMessage, message].slice(-MOST_FAILURES);
}
