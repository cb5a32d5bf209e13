import { create } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
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
import { startedEnvironment } from "../../domain/environment/environment.ts";
import { specFromProject, startsLocally } from "../../domain/environment/environment-from-project.ts";
import { needsWork } from "../../domain/environment/environment-phase.ts";
import { notFound, pendingDeletion, phaseUnsuitable, valueUnusable } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findEnvironment, insertEnvironment } from "../../store/environment/environment.ts";
import { queueEnvironmentWork } from "../../store/environment/environment-work.ts";
import { insertSourceSetters } from "../../store/identity/source-setter.ts";
import { findProject } from "../../store/project/project.ts";
import { insertProjectUse } from "../../store/project/project-use.ts";
import { findClassesOfRunner } from "../../store/runner/environment-class.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import { findWork } from "../../store/runner/work.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { requireOwnershipFor } from "../call/call.ts";
import { changeEnvironment } from "../environment/environment-change.ts";
import { newEnvironmentUnderPolicies, requireStartAllowed } from "../environment/environment-policy.ts";
import { checkEnvironmentReferences } from "../environment/environment-references.ts";
import { findSettersForSpec } from "../identity/source-trust.ts";

/** Most characters of an environment's name (contract, EnvironmentMetadata.name). */
const MOST_NAME_CHARACTERS = 80;

/** Where a run is to work. */
export interface PlacementRequest {
  readonly codeContext: AgentCodeContext | undefined;
  /** The runner that the run is routed to; empty for none. */
  readonly runnerId: string;
  readonly sessionId: string;
  /** What a new environment is called. */
  readonly name: string;
}

export interface Placement {
  readonly environment: Environment;
  /** Whether it was made now. */
  readonly made: boolean;
}

/**
 * The environment that a run works in: the one that it names, which is started
 * where it is stopped, or a new one.
 *
 * @throws DomainError NOT_FOUND; PERMISSION_DENIED for an environment that the
 *   caller could not start; PENDING_DELETION; PHASE_UNSUITABLE; VALUE_UNUSABLE
 *   for a class of another runner; PolicyDenied
 */
export async function resolvePlacement(
  tx: WriteTransaction,
  caller: Caller,
  asked: PlacementRequest,
): Promise<Placement> {
  const context = asked.codeContext?.context;
  if (context?.case === "environmentId") {
    return { environment: await presentEnvironment(tx, caller, context.value), made: false };
  }
  const environment = await newEnvironment(tx, caller, asked);
  return { environment, made: true };
}

async function presentEnvironment(tx: WriteTransaction, caller: Caller, id: string): Promise<Environment> {
  const environment = await findEnvironment(tx.db, caller, id);
  if (!environment) throw notFound("environment");
  requireOwnershipFor(
    "service.v1.EnvironmentService/StartEnvironment",
    caller,
    environment.metadata?.creator,
  );
  const wanted = environment.spec?.desiredPhase;
  if (wanted === EnvironmentPhase.DELETED) throw pendingDeletion("environment");
  if (wanted !== EnvironmentPhase.RUNNING) return startEnvironment(tx, caller, environment);
  // It may have gone down by itself, and nobody has been at it since.
  if (needsWork(environment) && !(await findWork(tx.db, WorkKind.ENVIRONMENT, id))) {
    await queueEnvironmentWork(tx, caller, environment);
  }
  return environment;
}

async function startEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  before: Environment,
): Promise<Environment> {
  if (before.spec?.workflowActionId) {
    const message = "the environment belongs to an action of a workflow and is being let go";
    throw phaseUnsuitable("environment", "STOPPED", message);
  }
  const after = startedEnvironment(before, tx.now);
  await requireStartAllowed(tx, caller, before, after);
  await changeEnvironment(tx, caller, before, after);
  return after;
}

async function newEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  { codeContext, runnerId, sessionId, name }: PlacementRequest,
): Promise<Environment> {
  const context = codeContext?.context;
  const project = context?.case === "projectId" ? await findProject(tx.db, caller, context.value) : undefined;
  if (context?.case === "projectId" && !project) throw notFound("project");
  const source = project
    ? await fromProject(tx, caller, project, runnerId)
    : { spec: specFromUrl(context?.case === "contextUrl" ? context.value : undefined), runnerId };
  const environmentClass = await checkEnvironmentReferences(tx.db, caller, source.spec);
  if (environmentClass && runnerId !== "" && environmentClass.runnerId !== runnerId) {
    throw valueUnusable("runnerId", "the environment class is of another runner: name that one, or neither");
  }
  const environment = await newEnvironmentUnderPolicies(tx, caller, {
    spec: source.spec,
    name: [...name].slice(0, MOST_NAME_CHARACTERS).join(""),
    annotations: {},
    sessionId,
    projectId: project?.id ?? "",
    runnerId: environmentClass?.runnerId ?? source.runnerId,
  });
  await insertEnvironment(tx, caller, environment);
  const setters = await findSettersForSpec(tx, caller, project, undefined);
  await insertSourceSetters(tx, caller, "environment", environment, setters);
  if (project) await insertProjectUse(tx, caller, project.id, caller.subject, environment.id);
  return environment;
}

/** On a runner that is named, the first of the project's classes that the runner serves, or none. */
async function fromProject(
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

/** Empty without a URL. */
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
