import { create } from "@bufbuild/protobuf";
import type { AgentCodeContext, AgentCodeContext_ContextURL } from "#gen/service/v1/agent_pb.js";
import {
  type Environment,
  EnvironmentPhase,
  type EnvironmentSpec,
  EnvironmentSpec_ContentSchema,
  EnvironmentSpec_MachineSchema,
  EnvironmentSpecSchema,
} from "#gen/service/v1/environment_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import {
  MAX_ENVIRONMENT_NAME_CHARACTERS,
  requireEnvironmentNotPendingDeletion,
  requireNotOwnedByAction,
  startedEnvironment,
} from "../../domain/environment/environment.ts";
import { specFromProject, startsLocally } from "../../domain/environment/environment-from-project.ts";
import { needsWork } from "../../domain/environment/environment-phase.ts";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireOwnershipFor } from "../../domain/identity/ownership.ts";
import { requireClassOfRunner } from "../../domain/runner/environment-class.ts";
import { findEnvironment, insertEnvironment } from "../../store/environment/environment.ts";
import { hasEnvironmentWork, queueEnvironmentWork } from "../../store/environment/environment-work.ts";
import { insertSourceSetters } from "../../store/identity/source-setter.ts";
import { findProject } from "../../store/project/project.ts";
import { insertProjectUse } from "../../store/project/project-use.ts";
import { findClassesOfRunner } from "../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { changeEnvironment } from "../environment/environment-change.ts";
import { newEnvironmentUnderPolicies, requireStartAllowed } from "../environment/environment-policy.ts";
import { checkEnvironmentReferences } from "../environment/environment-references.ts";
import { findSettersForSpec } from "../identity/source-trust.ts";

/** A request for the environment of a new agent execution. */
export interface PlacementRequest {
  readonly codeContext: AgentCodeContext | undefined;
  /** The runner that is to run the agent; empty for any. */
  readonly runnerId: string;
  readonly sessionId: string;
  /** Name of a new environment. */
  readonly name: string;
  /** True for an agent that is defined through the API. */
  readonly isApiAgent: boolean;
}

/** The environment of a new agent execution. */
export interface Placement {
  readonly environment: Environment;
  /** True when it was created for this request. */
  readonly created: boolean;
}

/**
 * Returns the environment in which an agent execution is to work: the requested one, which is started if it is
 * stopped, or a new one.
 *
 * @throws DomainError NOT_FOUND; PERMISSION_DENIED for an environment that the caller may not start;
 * PENDING_DELETION; PHASE_UNSUITABLE; VALUE_UNUSABLE for a class of another runner; PolicyDenied
 */
export async function resolvePlacement(
  tx: WriteTransaction,
  caller: Caller,
  asked: PlacementRequest,
): Promise<Placement> {
  const context = asked.codeContext?.context;
  if (context?.case === "environmentId") {
    return { environment: await getExistingEnvironment(tx, caller, context.value), created: false };
  }
  const environment = await createEnvironment(tx, caller, asked);
  return { environment, created: true };
}

async function getExistingEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  id: string,
): Promise<Environment> {
  const environment = await findEnvironment(tx.db, caller, id);
  if (!environment) throw notFound("environment");
  requireOwnershipFor(
    "service.v1.EnvironmentService/StartEnvironment",
    caller,
    environment.metadata?.creator,
  );
  requireEnvironmentNotPendingDeletion(environment);
  if (environment.spec?.desiredPhase !== EnvironmentPhase.RUNNING)
    return startEnvironment(tx, caller, environment);
  // It may have stopped by itself, with no work queued since.
  if (needsWork(environment) && !(await hasEnvironmentWork(tx.db, caller, environment))) {
    await queueEnvironmentWork(tx, caller, environment);
  }
  return environment;
}

async function startEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  before: Environment,
): Promise<Environment> {
  requireNotOwnedByAction(before);
  const after = startedEnvironment(before, tx.now);
  await requireStartAllowed(tx, caller, before, after);
  await changeEnvironment(tx, caller, before, after);
  return after;
}

async function createEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  { codeContext, runnerId, sessionId, name, isApiAgent }: PlacementRequest,
): Promise<Environment> {
  const context = codeContext?.context;
  const project = context?.case === "projectId" ? await findProject(tx.db, caller, context.value) : undefined;
  if (context?.case === "projectId" && !project) throw notFound("project");
  const source = project
    ? await specOnRunner(tx, caller, project, runnerId)
    : { spec: specFromUrl(context?.case === "contextUrl" ? context.value : undefined), runnerId };
  const environmentClass = await checkEnvironmentReferences(tx.db, caller, source.spec);
  if (environmentClass) requireClassOfRunner(environmentClass, runnerId);
  const environment = await newEnvironmentUnderPolicies(tx, caller, {
    spec: source.spec,
    name: [...name].slice(0, MAX_ENVIRONMENT_NAME_CHARACTERS).join(""),
    annotations: {},
    sessionId,
    projectId: project?.id ?? "",
    runnerId: environmentClass?.runnerId ?? source.runnerId,
  });
  await insertEnvironment(tx, caller, environment, { withAgent: true, isApiAgent });
  const setters = await findSettersForSpec(tx, caller, project, undefined);
  await insertSourceSetters(tx, caller, "environment", environment, setters);
  if (project) await insertProjectUse(tx, caller, project.id, caller.subject, environment.id);
  return environment;
}

/**
 * Returns the project's spec. For a requested runner, its class is the first of the project's classes that the runner
 * offers, if there is one.
 */
async function specOnRunner(
  tx: WriteTransaction,
  caller: Caller,
  project: Project,
  runnerId: string,
): Promise<{ readonly spec: EnvironmentSpec; readonly runnerId: string }> {
  const spec = specFromProject(project, undefined);
  if (runnerId === "") {
    const isLocal = startsLocally(project, spec);
    return { spec, runnerId: isLocal ? await findLocalRunnerId(tx.db, caller) : "" };
  }
  const classes = await findClassesOfRunner(tx.db, caller, runnerId);
  const served = classes.filter(({ enabled }) => enabled).map(({ id }) => id);
  const fitting = project.environmentClasses
    .map(({ environmentClass: { value } }) => value)
    .find((value) => typeof value === "string" && served.includes(value));
  delete spec.machine;
  if (typeof fitting === "string") {
    spec.machine = create(EnvironmentSpec_MachineSchema, { class: fitting });
  }
  return { spec, runnerId };
}

/** Returns the spec of a context URL; an empty spec without one. */
function specFromUrl(from: AgentCodeContext_ContextURL | undefined): EnvironmentSpec {
  const spec = create(EnvironmentSpecSchema);
  if (!from) return spec;
  const source = { case: "contextUrl", value: { url: from.url } } as const;
  spec.content = create(EnvironmentSpec_ContentSchema, { initializer: { specs: [{ spec: source }] } });
  if (from.environmentClassId !== "") {
    spec.machine = create(EnvironmentSpec_MachineSchema, { class: from.environmentClassId });
  }
  return spec;
}
