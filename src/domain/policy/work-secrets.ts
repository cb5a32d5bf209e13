import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Secret } from "#gen/service/v1/secret_pb.js";
import { DomainError } from "../error.ts";
import { ownerOf, type SecretOwnerKind } from "./secret.ts";

/** Scopes from the widest to the nearest; an environment has one creator, so at most one of the last two. */
const NEARNESS: Readonly<Record<SecretOwnerKind, number>> = {
  organization: 0,
  project: 1,
  user: 2,
  service_account: 2,
};

/**
 * Returns the secrets that work gets out of those that it may have, sorted by name. Of several secrets
 * with one name or file path, only that of the nearest scope counts, even if it is for the API only.
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
    .filter(({ secret }) => secret.mount.case !== "apiOnly" || secret.credentialProxy)
    .sort((one, other) => (one.secret.name < other.secret.name ? -1 : 1));
}

function nearnessOf({ secret }: { readonly secret: Secret }): number {
  return NEARNESS[ownerOf(secret).kind];
}

/**
 * Returns whether work in an environment may have secrets: never once the environment is to stop, and
 * for a workflow's action only if it is known that no pull request from a fork started it.
 */
export function mayHaveSecrets(environment: Environment): boolean {
  if (environment.spec?.desiredPhase !== EnvironmentPhase.RUNNING) return false;
  return !isWithheld(environment);
}

/**
 * Requires that no pull request from a fork started an environment. Otherwise a project created from it
 * would have environments that get secrets.
 * @throws DomainError SECRETS_WITHHELD
 */
export function requireNotWithheld(environment: Environment): void {
  if (!isWithheld(environment)) return;
  throw new DomainError(
    ErrorReason.SECRETS_WITHHELD,
    "the event of a pull request from a fork may have begun the environment, so that it gets no secrets, but environments of a project made from it would: create the project with the repository named in the request",
  );
}

/**
 * Returns whether a pull request from a fork has, or may have, started an environment. Environments of
 * workflow actions record it, except those of earlier releases, for which true is assumed.
 */
export function isWithheld({ metadata, spec }: Environment): boolean {
  return metadata?.secretsWithheld ?? Boolean(spec?.workflowActionId);
}
