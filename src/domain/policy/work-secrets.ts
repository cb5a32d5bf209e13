import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Secret } from "#gen/service/v1/secret_pb.js";
import { ownerOf, type SecretOwnerKind } from "./secret.ts";

/** Scopes from the widest to the nearest; an environment has one creator, so at most one of the last two. */
const NEARNESS: Readonly<Record<SecretOwnerKind, number>> = {
  organization: 0,
  project: 1,
  user: 2,
  service_account: 2,
};

/**
 * Returns the secrets that work gets of those that it may have, by name: of one name, or one file
 * path, the nearest scope counts, also where it keeps its secret from work.
 */
export function nearestSecrets<T extends { readonly secret: Secret }>(all: readonly T[]): T[] {
  const nearestFirst = all.toSorted((one, other) => nearnessOf(other) - nearnessOf(one));
  const taken = new Set<string>();
  const nearest = nearestFirst.filter(({ secret: { name, mount } }) => {
    // A name has no slash, and a path begins with one.
    const keys = mount.case === "filePath" ? [name, mount.value] : [name];
    if (keys.some((key) => taken.has(key))) return false;
    for (const key of keys) taken.add(key);
    return true;
  });
  return nearest
    .filter(({ secret }) => secret.mount.case !== "apiOnly")
    .sort((one, other) => (one.secret.name < other.secret.name ? -1 : 1));
}

function nearnessOf({ secret }: { readonly secret: Secret }): number {
  return NEARNESS[ownerOf(secret).kind];
}

/**
 * Returns whether work in an environment may have secrets: that of a workflow's action only where it
 * is known that no pull request from a fork began it, and none where the environment is to stop.
 */
export function mayHaveSecrets({ metadata, spec }: Environment): boolean {
  if (spec?.desiredPhase !== EnvironmentPhase.RUNNING) return false;
  return !(metadata?.secretsWithheld ?? Boolean(spec.workflowActionId));
}
