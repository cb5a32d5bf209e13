import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Environment,
  EnvironmentPhase,
  EnvironmentSchema,
  type EnvironmentSpec,
  EnvironmentSpecSchema,
} from "#gen/service/v1/environment_pb.js";
import { pendingDeletion, phaseUnsuitable, valueUnusable } from "../error.ts";
import type { CreationContext } from "../project/project.ts";
import { fold } from "../text/fold.ts";

/** The values for a new environment from a request and the project that it names. */
export interface EnvironmentTemplate {
  readonly spec: EnvironmentSpec | undefined;
  readonly name: string;
  readonly annotations: Record<string, string>;
  /** Empty when the environment belongs to no session. */
  readonly sessionId: string;
  /** Empty when the environment is created without a project. */
  readonly projectId: string;
  /**
   * Id of the runner that the environment is bound to; empty leaves it to any runner of the
   * organization.
   */
  readonly runnerId: string;
}

/** Maximum length of an environment's name (contract, EnvironmentMetadata.name), in characters. */
export const MAX_ENVIRONMENT_NAME_CHARACTERS = 80;

/** Version of a spec or status that never changed. */
const FIRST_VERSION = 1n;

/**
 * Returns a new environment, which is not assigned to a runner yet.
 * @throws DomainError VALUE_UNUSABLE for a desired phase other than running or stopped
 */
export function newEnvironment(template: EnvironmentTemplate, origin: CreationContext): Environment {
  const spec = template.spec ? clone(EnvironmentSpecSchema, template.spec) : create(EnvironmentSpecSchema);
  spec.specVersion = FIRST_VERSION;
  spec.desiredPhase = firstDesiredPhase(spec.desiredPhase);
  const source = spec.content?.initializer?.specs[0]?.spec;
  const createdAt = timestampFromMs(origin.now);
  const metadata: MessageInitShape<typeof EnvironmentSchema>["metadata"] = {
    organizationId: origin.organizationId,
    annotations: template.annotations,
    name: template.name,
    creator: origin.creator,
    originalContextUrl: source?.case === "contextUrl" ? source.value.url : "",
    createdAt,
    projectId: template.projectId,
    runnerId: template.runnerId,
    sessionId: template.sessionId,
    ...(spec.desiredPhase === EnvironmentPhase.RUNNING && { lastStartedAt: createdAt }),
  };
  return create(EnvironmentSchema, {
    id: origin.id,
    metadata,
    spec,
    status: { statusVersion: FIRST_VERSION, phase: EnvironmentPhase.CREATING },
  });
}

/**
 * Returns the environment with the desired phase running, as of `now` (milliseconds since 1970 UTC);
 * an archived environment is unarchived.
 * @throws DomainError PENDING_DELETION
 */
export function startedEnvironment(present: Environment, now: number): Environment {
  requireEnvironmentNotPendingDeletion(present);
  const environment = withDesiredPhase(present, EnvironmentPhase.RUNNING);
  if (environment.metadata) {
    environment.metadata.lastStartedAt = timestampFromMs(now);
    delete environment.metadata.archivedAt;
  }
  return environment;
}

/**
 * Returns the environment with the desired phase stopped; undefined when it has that already.
 * @throws DomainError PENDING_DELETION
 */
export function stoppedEnvironment(present: Environment): Environment | undefined {
  requireEnvironmentNotPendingDeletion(present);
  if (present.spec?.desiredPhase === EnvironmentPhase.STOPPED) return undefined;
  return withDesiredPhase(present, EnvironmentPhase.STOPPED);
}

/** Returns the environment archived as of `now`. */
export function archivedEnvironment(present: Environment, now: number): Environment {
  const environment = clone(EnvironmentSchema, present);
  if (environment.metadata) environment.metadata.archivedAt = timestampFromMs(now);
  return environment;
}

/**
 * Requires that an environment may be archived on request: it is stopped, and no action waits to continue in it.
 * @throws DomainError PENDING_DELETION, PHASE_UNSUITABLE
 */
export function requireArchivable(environment: Environment): void {
  requireEnvironmentNotPendingDeletion(environment);
  requireNotOwnedByAction(environment);
  if (isStopped(environment)) return;
  const phase = EnvironmentPhase[environment.status?.phase ?? EnvironmentPhase.UNSPECIFIED] ?? "";
  const message = "the environment is not stopped: stop it first, and archive it once its runner has done so";
  throw phaseUnsuitable("environment", phase, message);
}

/**
 * Returns the environment unarchived; undefined when it is not archived.
 * @throws DomainError PENDING_DELETION
 */
export function unarchivedEnvironment(present: Environment): Environment | undefined {
  requireEnvironmentNotPendingDeletion(present);
  if (!present.metadata?.archivedAt) return undefined;
  const environment = clone(EnvironmentSchema, present);
  delete environment.metadata?.archivedAt;
  return environment;
}

/** Returns the environment with the desired phase deleted; undefined when it has that already. */
export function deletedEnvironment(present: Environment): Environment | undefined {
  if (present.spec?.desiredPhase === EnvironmentPhase.DELETED) return undefined;
  return withDesiredPhase(present, EnvironmentPhase.DELETED);
}

/**
 * Returns whether the environment was never assigned to a runner, so that there is nothing to clean
 * up. The assignment raises the version of the status.
 */
export function wasNeverAssigned({ status }: Environment): boolean {
  return (status?.statusVersion ?? FIRST_VERSION) === FIRST_VERSION;
}

/**
 * Returns whether the environment is stopped: its desired phase is, and its machine is too or never
 * existed.
 */
export function isStopped(environment: Environment): boolean {
  if (environment.spec?.desiredPhase !== EnvironmentPhase.STOPPED) return false;
  return environment.status?.phase === EnvironmentPhase.STOPPED || wasNeverAssigned(environment);
}

/** Returns the text that `search` looks through: one folded line each for name and id. */
export function environmentSearchText({ id, metadata }: Environment): string {
  return fold([metadata?.name ?? "", id].join("\n"));
}

function firstDesiredPhase(requested: EnvironmentPhase): EnvironmentPhase {
  switch (requested) {
    case EnvironmentPhase.UNSPECIFIED:
      return EnvironmentPhase.RUNNING;
    case EnvironmentPhase.RUNNING:
    case EnvironmentPhase.STOPPED:
      return requested;
    default:
      throw valueUnusable(
        "spec.desiredPhase",
        "the desired phase of a new environment must be running or stopped",
      );
  }
}

function withDesiredPhase(present: Environment, phase: EnvironmentPhase): Environment {
  const environment = clone(EnvironmentSchema, present);
  environment.spec ??= create(EnvironmentSpecSchema);
  if (environment.spec.desiredPhase !== phase) {
    environment.spec.desiredPhase = phase;
    environment.spec.specVersion += 1n;
  }
  return environment;
}

/** Requires that an environment is not pending deletion. @throws DomainError PENDING_DELETION */
export function requireEnvironmentNotPendingDeletion({ spec }: Environment): void {
  if (spec?.desiredPhase === EnvironmentPhase.DELETED) throw pendingDeletion("environment");
}

/**
 * Requires that no workflow action owns an environment that is to be started or archived.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNotOwnedByAction({ spec }: Environment): void {
  if (!spec?.workflowActionId || spec.desiredPhase !== EnvironmentPhase.STOPPED) return;
  const message =
    "the environment belongs to an action of a workflow, which waits for an approval or lets go of it";
  throw phaseUnsuitable("environment", "STOPPED", message);
}
