import { RunnerIsolation, RunnerPhase } from "#gen/service/v1/runner_pb.js";
import type { Tone } from "../../parts/State.tsx";

/** The words and tones of a runner's phases. */
const PHASES: Readonly<Record<RunnerPhase, readonly [Tone, string]>> = {
  [RunnerPhase.UNSPECIFIED]: ["waiting", "Unknown"],
  [RunnerPhase.CREATED]: ["waiting", "Not started yet"],
  [RunnerPhase.INACTIVE]: ["failed", "Silent"],
  [RunnerPhase.ACTIVE]: ["done", "Active"],
  [RunnerPhase.DELETING]: ["stopped", "Being removed"],
  [RunnerPhase.DELETED]: ["stopped", "Removed"],
  [RunnerPhase.DEGRADED]: ["asks", "Degraded"],
};

/** Returns the tone and word of a runner's phase. */
export const runnerState = (phase: RunnerPhase = RunnerPhase.UNSPECIFIED): readonly [Tone, string] =>
  PHASES[phase] ?? PHASES[RunnerPhase.UNSPECIFIED];

/** Words for what keeps the work of a runner in. */
export const ISOLATIONS: Readonly<Record<RunnerIsolation, string>> = {
  [RunnerIsolation.UNSPECIFIED]: "not told",
  [RunnerIsolation.NONE]: "none",
  [RunnerIsolation.BUBBLEWRAP]: "sandbox (bubblewrap)",
  [RunnerIsolation.CONTAINER]: "container",
};
