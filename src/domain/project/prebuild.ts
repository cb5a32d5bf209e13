import { equals } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ReportProgressRequest } from "#gen/runner/v1/work_service_pb.js";
import { type EnvironmentInitializer, EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type Project, ProjectPhase } from "#gen/service/v1/project_pb.js";
import { valueUnusable } from "../error.ts";
import { prebuildInstant } from "./schedule.ts";

const DAY_MS = 24 * 3_600_000;

/**
 * The state of a prebuild: `waiting` for a runner; `running` from the first lease to its end, including the time
 * between two attempts; `ready`; `failed` and `cancelled`, when nothing remains on the runner unless the warning says
 * so; `failing`, `cancelling` and `removing`, while a runner has to stop or something may remain there. The row is
 * deleted after `removing`; the other two end as `failed` and `cancelled`.
 */
export type PrebuildState =
  | "waiting"
  | "running"
  | "ready"
  | "failing"
  | "failed"
  | "cancelling"
  | "cancelled"
  | "removing";

/** The states of a prebuild that is about to end. */
export type EndingState = Extract<PrebuildState, "failing" | "cancelling" | "removing">;

/** A workspace that a runner prepares for the environments of a project and a class. */
export interface Prebuild {
  readonly id: string;
  readonly projectId: string;
  readonly environmentClassId: string;
  /** Id of the class's runner, which keeps the workspace. */
  readonly runnerId: string;
  /** Subject whose credentials clone the repository. */
  readonly executor: Subject;
  /** Subject that asked for it; unset when the project's schedule did. */
  readonly creator?: Subject | undefined;
  /** When it was due, in milliseconds since 1970 UTC. Unique within its project and class. */
  readonly instantMs: number;
  /** Times of its creation and its last change, in milliseconds since 1970 UTC. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** When it became ready, failed or was cancelled, in milliseconds since 1970 UTC. */
  readonly endedAtMs?: number | undefined;
  /** Time that all its attempts may take together; unset for the timeout that its project has when it begins. */
  readonly timeoutMs?: number | undefined;
  /** Number of changes since its creation. */
  readonly changes: number;
  readonly state: PrebuildState;
  /** While it runs: when it is stopped, in milliseconds since 1970 UTC. */
  readonly stopsAtMs?: number | undefined;
  /** Content of the workspace; unset before the first lease. */
  readonly initializer?: EnvironmentInitializer | undefined;
  /** Setters of the initializer at the last lease; unset before the first. */
  readonly sourceSetBy?: readonly Subject[] | undefined;
  /** Reason of the failure; empty for none. */
  readonly failure: string;
  /** Advice for people after its end; empty for none. */
  readonly warning: string;
}

/**
 * Returns the hour of the day in UTC at which a project's prebuilds are made; undefined for a project without
 * prebuilds.
 */
export function prebuildHour({
  desiredPhase,
  prebuildConfiguration: configuration,
}: Project): number | undefined {
  if (desiredPhase !== ProjectPhase.ACTIVE || !configuration?.enabled) return undefined;
  if (configuration.environmentClassIds.length === 0) return undefined;
  const trigger = configuration.trigger?.trigger;
  return trigger?.case === "dailySchedule" ? trigger.value.hourUtc : undefined;
}

/**
 * Returns whether a prebuild may still begin: its project has a schedule, or somebody asked for the prebuild and its
 * class is still in the project's configuration.
 */
export function isWanted({ creator, environmentClassId }: Prebuild, project: Project): boolean {
  if (!creator) return prebuildHour(project) !== undefined;
  const classIds = project.prebuildConfiguration?.environmentClassIds ?? [];
  return project.desiredPhase === ProjectPhase.ACTIVE && classIds.includes(environmentClassId);
}

/** Returns whether a state belongs to a prebuild that is about to end. */
export function isEnding(state: PrebuildState): state is EndingState {
  return state === "failing" || state === "cancelling" || state === "removing";
}

/**
 * Returns the time that all attempts at a prebuild of the project may take together. Every stored configuration has
 * it.
 */
export function prebuildTimeoutMs({ prebuildConfiguration }: Project): number {
  const timeout = prebuildConfiguration?.timeout;
  if (!timeout) throw new Error("a prebuild configuration was stored without its timeout");
  return durationMs(timeout);
}

/**
 * Returns the latest instant up to nowMs (inclusive) at which a project's prebuilds of an hour were due, and the next
 * one after it. However long the job did not run, only one prebuild is owed.
 */
export function duePrebuild(
  hourUtc: number,
  projectId: string,
  nowMs: number,
): { readonly instantMs: number; readonly nextMs: number } {
  const nextMs = prebuildInstant(hourUtc, projectId, nowMs);
  return { instantMs: nextMs - DAY_MS, nextMs };
}

/**
 * Returns whether an environment with one initializer can start from a workspace with another. Branches may differ,
 * since the runner updates the workspace; other sources would remain in it.
 */
export function isCompatibleInitializer(
  { initializer }: Prebuild,
  wanted: EnvironmentInitializer | undefined,
): boolean {
  if (!initializer || !wanted) return false;
  return equals(EnvironmentInitializerSchema, initializer, wanted);
}

/** Requires that a report on a prebuild names no environment. @throws DomainError VALUE_UNUSABLE */
export function requireNoEnvironment({ environment }: Pick<ReportProgressRequest, "environment">): void {
  if (environment) throw valueUnusable("environment", "a prebuild has no environment");
}
