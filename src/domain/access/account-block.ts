import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { isUntouched } from "../environment/environment.ts";
import { notFound, ownAccount, permissionDenied } from "../error.ts";
import type { Caller } from "../identity/caller.ts";

/** What an account is in one organization. */
export interface Belonging {
  readonly organizationId: string;
  /** OrganizationRole by number. */
  readonly role: number;
}

/**
 * Whether a caller may cut off an account, or give it back its access: it must
 * be an administrator wherever the account is a member, since the account is
 * cut off everywhere.
 *
 * @param own the caller's account in all its organizations
 * @param target the account in all its organizations
 * @throws DomainError NOT_FOUND for an account outside the caller's organization,
 *   and PERMISSION_DENIED for one that is also in an organization where the
 *   caller is no administrator
 */
export function requireAdministratorOfAccount(
  { organizationId }: Pick<Caller, "organizationId">,
  own: readonly Belonging[],
  target: readonly Belonging[],
): void {
  if (!target.some((each) => each.organizationId === organizationId)) throw notFound("account");
  const administered = new Set(own.filter(isAdministrator).map((each) => each.organizationId));
  if (target.every((each) => administered.has(each.organizationId))) return;
  throw permissionDenied(
    "block_account",
    "the account is also in an organization that you do not administer: ask the operator of the server",
  );
}

/** @throws DomainError OWN_ACCOUNT */
export function requireOtherAccount({ accountId }: Pick<Caller, "accountId">, target: string): void {
  if (accountId === target) throw ownAccount("your own account can be blocked by others only");
}

export function isAdministrator({ role }: Belonging): boolean {
  return role === OrganizationRole.ADMIN;
}

/** Phases in which an environment runs or is about to. */
export const ACTIVE_PHASES: readonly EnvironmentPhase[] = [
  EnvironmentPhase.CREATING,
  EnvironmentPhase.STARTING,
  EnvironmentPhase.RUNNING,
  EnvironmentPhase.UPDATING,
];

/**
 * Whether blocking its creator stops the environment. One that is pending
 * deletion is left to that: wanting it merely stopped would keep it.
 */
export function stopsWithItsCreator({ spec, status }: Environment): boolean {
  const desired = spec?.desiredPhase ?? EnvironmentPhase.UNSPECIFIED;
  const present = status?.phase ?? EnvironmentPhase.UNSPECIFIED;
  if (desired === EnvironmentPhase.DELETED) return false;
  return ACTIVE_PHASES.includes(desired) || ACTIVE_PHASES.includes(present);
}

/** Returns whether the environment was ever started: by a person, or by a runner that took it on. */
export function wasStarted(environment: Environment): boolean {
  return environment.metadata?.lastStartedAt !== undefined || !isUntouched(environment);
}

/**
 * Returns whether an environment was made or started after its creator was cut
 * off, by another or after the creator got its access again: then it goes on.
 *
 * @param cutOffId an id that was made at that instant
 */
export function isStartedSince({ id, metadata }: Environment, cutOffId: string): boolean {
  if (id > cutOffId) return true;
  return metadata?.lastStartedAt !== undefined && timestampMs(metadata.lastStartedAt) > instantOf(cutOffId);
}

/** Milliseconds since 1970 UTC, which a UUID v7 begins with. */
function instantOf(id: string): number {
  return Number.parseInt(id.replace("-", "").slice(0, 12), 16);
}
