import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { type Runner, RunnerPhase, RunnerSchema, RunnerSpecSchema } from "#gen/service/v1/runner_pb.js";
import type { CreateRunnerRequest, UpdateRunnerRequest } from "#gen/service/v1/runner_service_pb.js";
import { inUse, valueUnusable } from "../error.ts";

/** Validity of an exchange token (contract, CreateRunnerResponse): 24 hours. */
export const EXCHANGE_TOKEN_VALID_MS = 24 * 3600 * 1000;

/** The phases that an administrator may request; deleting a runner is a separate operation. */
const REQUESTABLE: readonly RunnerPhase[] = [RunnerPhase.ACTIVE, RunnerPhase.INACTIVE];

/** Name of the runner that represents the local runners of an organization's members. */
const LOCAL_CONFIGURATION_NAME = "Local runners";

/** Values of a new runner that the request does not contain. The runner that the system creates has no creator. */
export interface RunnerCreationContext {
  readonly id: string;
  readonly creator?: Subject;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * Returns a new runner, which has not connected yet.
 * @throws DomainError VALUE_UNUSABLE for the kind that only the system creates, and for a phase that nobody may request
 */
export function newRunner(
  { name, kind, spec }: Pick<CreateRunnerRequest, "name" | "kind" | "spec">,
  origin: RunnerCreationContext,
): Runner {
  if (kind === RunnerKind.LOCAL_CONFIGURATION) {
    throw valueUnusable("kind", "a runner of the kind RUNNER_KIND_LOCAL_CONFIGURATION is made by the system");
  }
  const desiredPhase = spec?.desiredPhase || RunnerPhase.ACTIVE;
  requireRequestable(desiredPhase);
  return createdRunner(name, kind || RunnerKind.REMOTE, desiredPhase, origin);
}

/** Returns the runner that represents the local runners of all members; each organization has one. */
export function newLocalConfiguration(origin: RunnerCreationContext): Runner {
  return createdRunner(LOCAL_CONFIGURATION_NAME, RunnerKind.LOCAL_CONFIGURATION, RunnerPhase.ACTIVE, origin);
}

/**
 * Returns the runner after an update; undefined when nothing changes. Absent fields do not change. `now` is in
 * milliseconds since 1970 UTC.
 * @throws DomainError VALUE_UNUSABLE for the runner that represents local runners, and for a phase that nobody may
 * request
 */
export function updatedRunner(
  present: Runner,
  { name, spec }: Pick<UpdateRunnerRequest, "name" | "spec">,
  now: number,
): Runner | undefined {
  if (present.kind === RunnerKind.LOCAL_CONFIGURATION) {
    throw valueUnusable("runnerId", "the runner represents local runners, and stays as the system made it");
  }
  const desiredPhase = spec?.desiredPhase;
  if (desiredPhase !== undefined) requireRequestable(desiredPhase);
  const runner = clone(RunnerSchema, present);
  if (name !== undefined) runner.name = name;
  if (desiredPhase !== undefined) {
    runner.spec ??= create(RunnerSpecSchema);
    runner.spec.desiredPhase = desiredPhase;
  }
  if (equals(RunnerSchema, present, runner)) return undefined;
  runner.updatedAt = timestampFromMs(now);
  return runner;
}

/** @throws DomainError VALUE_UNUSABLE for a phase that nobody may request */
function requireRequestable(desiredPhase: RunnerPhase): void {
  if (REQUESTABLE.includes(desiredPhase)) return;
  throw valueUnusable("spec.desiredPhase", "the desired phase of a runner must be active or inactive");
}

/** Returns whether runners of a kind are on a member's own machine. */
export function isLocalKind(kind: RunnerKind): boolean {
  return kind === RunnerKind.LOCAL || kind === RunnerKind.LOCAL_CONFIGURATION;
}

/**
 * Requires that a program can connect as the runner.
 * @throws DomainError VALUE_UNUSABLE for the runner that represents local runners
 */
export function requireRunnerConnectable({ kind }: Runner): void {
  if (kind === RunnerKind.LOCAL_CONFIGURATION) {
    throw valueUnusable("runnerId", "the runner represents local runners, and no program connects as it");
  }
}

/**
 * Requires that a project may name the runner's classes.
 * @throws DomainError VALUE_UNUSABLE for a runner on a member's own machine: a project is not for a single person
 */
export function requireNoLocalClass({ kind }: Runner): void {
  if (kind === RunnerKind.LOCAL) {
    throw valueUnusable(
      "projectEnvironmentClasses",
      "an entry names an environment class of a local runner: set localRunner to true instead",
    );
  }
}

/**
 * Requires that a runner may be deleted.
 * @throws DomainError IN_USE for the runner that represents local runners
 */
export function requireRunnerDeletable({ kind }: Runner): void {
  if (kind === RunnerKind.LOCAL_CONFIGURATION) {
    throw inUse(
      "runner",
      "organization",
      "the runner represents local runners and stays with its organization",
    );
  }
}

function createdRunner(
  name: string,
  kind: RunnerKind,
  desiredPhase: RunnerPhase,
  { id, creator, now }: RunnerCreationContext,
): Runner {
  const at = timestampFromMs(now);
  return create(RunnerSchema, {
    runnerId: id,
    createdAt: at,
    updatedAt: at,
    name,
    spec: { desiredPhase },
    status: { updatedAt: at, phase: RunnerPhase.CREATED },
    ...(creator && { creator }),
    kind,
  });
}

/** Requires that a runner has no environments. @throws DomainError IN_USE */
export function requireNoEnvironments(count: number): void {
  if (count === 0) return;
  throw inUse("runner", "environment", "environments are on the runner: delete them first, or use force");
}
