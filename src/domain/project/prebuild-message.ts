import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Prebuild as Message,
  PrebuildPhase as Phase,
  PrebuildSchema,
  PrebuildMetadata_PrebuildTrigger as Trigger,
} from "#gen/service/v1/prebuild_pb.js";
import type { Prebuild, PrebuildState } from "./prebuild.ts";

const PHASES: Readonly<Record<PrebuildState, Phase>> = {
  waiting: Phase.PENDING,
  running: Phase.RUNNING,
  ready: Phase.COMPLETED,
  failing: Phase.STOPPING,
  failed: Phase.FAILED,
  cancelling: Phase.CANCELLING,
  cancelled: Phase.CANCELLED,
  removing: Phase.DELETING,
};

/** Returns the phase that callers see for a state. */
export function phaseOf(state: PrebuildState): Phase {
  return PHASES[state];
}

/** Returns the states that have one of the given phases; none for unused phases. */
export function statesOf(phases: readonly Phase[]): PrebuildState[] {
  const wanted = new Set(phases);
  return (Object.keys(PHASES) as PrebuildState[]).filter((state) => wanted.has(PHASES[state]));
}

/** Returns the contract's message for a prebuild. */
export function prebuildMessage(prebuild: Prebuild, organizationId: string): Message {
  const { creator, executor, state, timeoutMs, endedAtMs } = prebuild;
  return create(PrebuildSchema, {
    id: prebuild.id,
    metadata: {
      organizationId,
      projectId: prebuild.projectId,
      environmentClassId: prebuild.environmentClassId,
      creator: creator ?? executor,
      createdAt: timestampFromMs(prebuild.createdAtMs),
      updatedAt: timestampFromMs(prebuild.updatedAtMs),
      triggeredBy: creator ? Trigger.MANUAL : Trigger.SCHEDULED,
      executor,
    },
    spec: { ...desired(state), ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }) },
    status: {
      phase: PHASES[state],
      ...(endedAtMs !== undefined && { completionTime: timestampFromMs(endedAtMs) }),
      failureMessage: prebuild.failure,
      warningMessage: prebuild.warning,
      statusVersion: BigInt(prebuild.changes + 1),
    },
  });
}

/** Returns the desired phase of a prebuild. It only ever moves forward, so its version follows from it. */
function desired(state: PrebuildState) {
  if (state === "removing") return { specVersion: 3n, desiredPhase: Phase.DELETED };
  if (state === "cancelling" || state === "cancelled")
    return { specVersion: 2n, desiredPhase: Phase.CANCELLED };
  return { specVersion: 1n, desiredPhase: Phase.COMPLETED };
}
