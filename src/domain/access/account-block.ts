import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { wasNeverAssigned } from "../environment/environment.ts";
import { notFound, ownAccount, permissionDenied } from "../error.ts";
import type { Caller } from "../identity/caller.ts";

/** The account's role in one organization. */
export interface Membership {
  readonly organizationId: string;
  /** OrganizationRole by number. */
  readonly role: number;
  /** Set while the account is suspended there, and administers nothing. */
  readonly suspendedAt: number | null;
}

/**
 * Requires that a caller may block or unblock an account: it must be an administrator of every
 * organization that the account is a member of, since blocking takes effect everywhere.
 * @param own the caller's account in all its organizations
 * @param target the account in all its organizations
 * @throws DomainError NOT_FOUND for an account outside the caller's organization, and
 * PERMISSION_DENIED for one that is also in an organization where the caller is no administrator
 */
export function requireAdministratorOfAccount(
  { organizationId }: Pick<Caller, "organizationId">,
  own: readonly Membership[],
  target: readonly Membership[],
): void {
  if (!target.some((each) => each.organizationId === organizationId)) throw notFound("account");
  const administered = new Set(own.filter(isAdministrator).map((each) => each.organizationId));
  if (target.every((each) => administered.has(each.organizationId))) return;
  throw permissionDenied(
    "block_account",
    "the account is also in an organization that you do not administer: ask the operator of the server",
  );
}

/**
 * Requires that the account is not the caller's own.
 * @throws DomainError OWN_ACCOUNT
 */
export function requireOtherAccount({ accountId }: Pick<Caller, "accountId">, target: string): void {
  if (accountId === target) throw ownAccount("your own account can be blocked by others only");
}

export function isAdministrator({ role, suspendedAt }: Membership): boolean {
  return role === OrganizationRole.ADMIN && suspendedAt === null;
}

/** Phases in which an environment runs or is about to run. */
export const ACTIVE_PHASES: readonly EnvironmentPhase[] = [
  EnvironmentPhase.CREATING,
  EnvironmentPhase.STARTING,
  EnvironmentPhase.RUNNING,
  EnvironmentPhase.UPDATING,
];

/**
 * Returns whether blocking its creator stops the environment. An environment that is pending
 * deletion is left alone: wanting it merely stopped would keep it.
 */
export function isStoppedByBlock({ spec, status }: Environment): boolean {
  const desired = spec?.desiredPhase ?? EnvironmentPhase.UNSPECIFIED;
  const present = status?.phase ?? EnvironmentPhase.UNSPECIFIED;
  if (desired === EnvironmentPhase.DELETED) return false;
  return ACTIVE_PHASES.includes(desired) || ACTIVE_PHASES.includes(present);
}

/** Returns whether the environment was ever started: by a person after its creation, or by its assignment to a runner. */
export function wasStarted(environment: Environment): boolean {
  const { createdAt, lastStartedAt } = environment.metadata ?? {};
  if (!wasNeverAssigned(environment)) return true;
  return lastStartedAt !== undefined && (!createdAt || timestampMs(lastStartedAt) > timestampMs(createdAt));
}

/**
 * Returns whether an environment was created or started after its creator was blocked, by another
 * subject or after the creator was unblocked. Such an environment keeps running.
 * @param revokedAtId an id that was generated at the time of the block
 */
export function isStartedSince({ id, metadata }: Environment, revokedAtId: string): boolean {
  if (id > revokedAtId) return true;
  return metadata?.lastStartedAt !== undefined && timestampMs(metadata.lastStartedAt) > timeOfId(revokedAtId);
}

/** Returns the time at which a UUID v7 was generated, in milliseconds since 1970 UTC. */
function timeOfId(id: string): number {
  return Number.parseInt(id.replace("-", "").slice(0, 12), 16);
}
