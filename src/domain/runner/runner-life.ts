import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Runner,
  RunnerPhase,
  RunnerSchema,
  type RunnerStatus,
  RunnerStatusSchema,
} from "#gen/service/v1/runner_pb.js";

/** How long nothing may be heard of a runner before it is shown inactive (contract, WorkService.Heartbeat). */
export const SILENCE_MS = 90_000;

/** How soon a runner is asked to call again: a call may be lost, and the next one, before it counts as silent. */
export const HEARTBEAT_WITHIN_MS = SILENCE_MS / 3;

/** How long a runner's own token holds. */
export const RUNNER_TOKEN_VALID_MS = 365 * 24 * 3600 * 1000;

/** What a runner says of itself when it registers. */
export interface RunnerIntroduction {
  readonly version: string;
  readonly systemDetails: string;
}

/** The runner as one that has just connected. */
export function registeredRunner(present: Runner, said: RunnerIntroduction, now: number): Runner {
  const { version, systemDetails } = said;
  return withStatus(present, { version, systemDetails, phase: RunnerPhase.ACTIVE, message: "" }, now);
}

/** What a runner says of itself when it is heard of again; without a reason the one that is known stays. */
export interface RunnerNews {
  /** Empty leaves what is known. */
  readonly version?: string;
  /** What keeps part of its work from being done; empty for nothing. */
  readonly degradedReason?: string;
}

/** The runner after a sign of life; undefined when nothing about it has changed. */
export function connectedRunner(
  present: Runner,
  { version, degradedReason }: RunnerNews,
  now: number,
): Runner | undefined {
  const known = present.status ?? create(RunnerStatusSchema);
  const isDegraded =
    degradedReason === undefined ? known.phase === RunnerPhase.DEGRADED : degradedReason !== "";
  const status = {
    version: version || known.version,
    phase: isDegraded ? RunnerPhase.DEGRADED : RunnerPhase.ACTIVE,
    message: isDegraded ? (degradedReason ?? known.message) : "",
  };
  const isKnown =
    status.version === known.version && status.phase === known.phase && status.message === known.message;
  return isKnown ? undefined : withStatus(present, status, now);
}

/** The runner as one of which nothing was heard for too long. */
export function inactiveRunner(present: Runner, now: number): Runner {
  const message = `nothing was heard of the runner for ${SILENCE_MS / 1000} seconds`;
  return withStatus(present, { phase: RunnerPhase.INACTIVE, message }, now);
}

/** Whether work is wanted of the runner. */
export function isAvailable({ spec }: Runner): boolean {
  return spec?.desiredPhase === RunnerPhase.ACTIVE;
}

function withStatus(present: Runner, changes: Partial<RunnerStatus>, now: number): Runner {
  const runner = clone(RunnerSchema, present);
  runner.status ??= create(RunnerStatusSchema);
  Object.assign(runner.status, changes, { updatedAt: timestampFromMs(now) });
  return runner;
}
