import { durationMs } from "@bufbuild/protobuf/wkt";
import type { PrebuildRemovalWork, PrebuildWork } from "#gen/runner/v1/work_pb.js";
import { withTimeLimit } from "../process/deadline.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { prepareWorkspace } from "./preparation.ts";
import { prebuildWorkspace } from "./work-dirs.ts";
import { removeWorkspace } from "./workspace.ts";

/**
 * Prepares a workspace that new environments are copied from.
 *
 * @throws WorkFailure
 */
export async function executePrebuild(assignment: Assignment, work: PrebuildWork): Promise<void> {
  const timeMs = work.timeout && durationMs(work.timeout);
  const timeoutError = new WorkFailure("prebuild_timed_out", `the preparation took longer than ${timeMs} ms`);
  await withTimeLimit(timeMs, assignment.lease.signal, timeoutError, (signal) =>
    prepareWorkspace(assignment, {
      workspace: prebuildWorkspace(assignment.tools, work.prebuildId),
      initializer: work.initializer,
      prebuildId: "",
      namedFiles: [work.devcontainerFilePath, work.automationsFilePath].filter((path) => path !== ""),
      signal,
    }),
  );
}

/** Removes a prepared workspace, if it exists. */
export async function executePrebuildRemoval(
  { tools }: Assignment,
  { prebuildId }: PrebuildRemovalWork,
): Promise<void> {
  await removeWorkspace(tools.programs, prebuildWorkspace(tools, prebuildId));
}
