import { type Environment, EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";

/** Phases in which the machine of an environment is up. */
const UP: readonly Phase[] = [Phase.RUNNING, Phase.UPDATING];
const DOWN: readonly Phase[] = [Phase.STOPPING, Phase.STOPPED];

/** Returns whether agents can work in an environment now. */
export function canRunAgents({ spec, status }: Environment): boolean {
  return spec?.desiredPhase === Phase.RUNNING && status?.phase === Phase.RUNNING;
}

/**
 * Returns the reason why no agent can continue in an environment after a change of it, as text for
 * people. Undefined when an agent can continue, or will be able to once the environment is up.
 * @param after undefined for an environment that was removed
 */
export function unavailableReason(before: Environment, after: Environment | undefined): string | undefined {
  if (!after) return "its environment was removed";
  const wanted = after.spec?.desiredPhase;
  if (wanted === Phase.DELETED) return "its environment was deleted";
  const failure = newestFailure(before, after);
  if (wanted === Phase.STOPPED) {
    return failure === undefined ? "its environment was stopped" : `its environment failed: ${failure}`;
  }
  const [from, to] = [before.status?.phase ?? Phase.UNSPECIFIED, after.status?.phase ?? Phase.UNSPECIFIED];
  if (!UP.includes(from) || !DOWN.includes(to)) return undefined;
  return failure === undefined ? "its environment went down" : `its environment went down: ${failure}`;
}

/** Returns the newest failure message that the change added, or undefined. */
function newestFailure(before: Environment, after: Environment): string | undefined {
  const newest = after.status?.failureMessage.at(-1);
  const isNew =
    (after.status?.failureMessage.length ?? 0) > 0 && newest !== before.status?.failureMessage.at(-1);
  return isNew ? newest : undefined;
}
