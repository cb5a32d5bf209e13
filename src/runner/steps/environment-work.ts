import type { EnvironmentWork } from "#gen/runner/v1/work_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Assignment } from "../protocol/assignment.ts";
import { requireSupportedPolicies } from "../protocol/supported-policies.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { prepareWorkspace } from "./preparation.ts";
import { environmentWorkspace } from "./work-dirs.ts";
import { readCheckouts, removeWorkspace } from "./workspace.ts";

/**
 * Brings an environment to its desired phase. An environment is a folder without processes of its own, so stopping it
 * changes nothing.
 *
 * @throws WorkFailure
 */
export async function executeEnvironment(
  assignment: Assignment,
  { environment, prebuildId }: EnvironmentWork,
): Promise<void> {
  const { tools, lease } = assignment;
  const enter = (phase: EnvironmentPhase) => lease.report({ environment: { phase } });
  const workspace = environmentWorkspace(tools, environment?.id ?? "");
  switch (environment?.spec?.desiredPhase) {
    case EnvironmentPhase.RUNNING:
      requireSupportedPolicies(assignment.work.policies, assignment.tools.isolation);
      if (await readCheckouts(workspace)) return;
      // A new environment is already in the phase CREATING.
      if (environment.status?.phase === EnvironmentPhase.STOPPED) await enter(EnvironmentPhase.STARTING);
      await prepareWorkspace(assignment, {
        workspace,
        initializer: environment.spec.content?.initializer,
        prebuildId,
        namedFiles: namedFilesOf(environment),
        signal: lease.signal,
      });
      return;
    case EnvironmentPhase.STOPPED:
      return;
    case EnvironmentPhase.DELETED:
      await enter(EnvironmentPhase.DELETING);
      await tools.watch?.abandon(environment.id);
      await removeWorkspace(tools.programs, workspace);
      tools.watch?.forget(environment.id);
      return;
    default:
      throw new WorkFailure("phase_unknown", "this runner does not know the requested phase");
  }
}

/** Returns the paths of the repository's files that the environment's spec names. */
export function namedFilesOf({ spec }: Environment): string[] {
  const paths = [spec?.devcontainer?.devcontainerFilePath, spec?.automationsFile?.automationsFilePath];
  return paths.filter((path) => path !== undefined && path !== "") as string[];
}
