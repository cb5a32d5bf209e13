import { equals } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type EnvironmentInitializer, EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type Project, ProjectPhase } from "#gen/service/v1/project_pb.js";
import { prebuildInstant } from "./schedule.ts";

const DAY_MS = 24 * 3_600_000;

/**
 * Where a prebuild stands: `waiting` for a runner; `running` from the first
 * lease to its end, also between two attempts; `ready`; `failed`, with nothing
 * left of it at the runner; `removing`, while something may be left there.
 */
export type PrebuildState = "waiting" | "running" | "ready" | "failed" | "removing";

/** A workspace that a runner prepares for the environments of a project and a class. */
export interface Prebuild {
  readonly id: string;
  readonly projectId: string;
  readonly environmentClassId: string;
  /** The runner of the class, which keeps the workspace. */
  readonly runnerId: string;
  /** Whose credentials clone the repository. */
  readonly executor: Subject;
  /** When it was due, in milliseconds since 1970 UTC. */
  readonly instantMs: number;
  readonly state: PrebuildState;
  /** While it runs: when its time is over, in milliseconds since 1970 UTC. */
  readonly stopsAtMs?: number | undefined;
  /** What the workspace is filled with; unset before the first lease. */
  readonly initializer?: EnvironmentInitializer | undefined;
  /** Who had set that at the last lease; unset before the first. */
  readonly sourceSetBy?: readonly Subject[] | undefined;
  /** What went wrong; empty while nothing did. */
  readonly failure: string;
}

/** Hour of the day in UTC at which a project gets its prebuilds; undefined for one that gets none. */
export function prebuildHour({
  desiredPhase,
  prebuildConfiguration: configuration,
}: Project): number | undefined {
  if (desiredPhase !== ProjectPhase.ACTIVE || !configuration?.enabled) return undefined;
  if (configuration.environmentClassIds.length === 0) return undefined;
  const trigger = configuration.trigger?.trigger;
  return trigger?.case === "dailySchedule" ? trigger.value.hourUtc : undefined;
}

/** How long a prebuild of the project may take in all its attempts; stored with every configuration. */
export function prebuildTimeoutMs({ prebuildConfiguration }: Project): number {
  const timeout = prebuildConfiguration?.timeout;
  if (!timeout) throw new Error("a prebuild configuration was stored without its timeout");
  return durationMs(timeout);
}

/**
 * The latest instant up to nowMs (inclusive) at which a project's prebuilds of
 * an hour were due, and the next one after it: however long nobody looked, only
 * one is owed.
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
 * Whether a workspace that was filled with one initializer suits an environment
 * of another: branches move between the two, so that the runner brings it up to
 * date; other sources would be left lying in it.
 */
export function suits({ initializer }: Prebuild, wanted: EnvironmentInitializer | undefined): boolean {
  if (!initializer || !wanted) return false;
  return equals(EnvironmentInitializerSchema, initializer, wanted);
}
