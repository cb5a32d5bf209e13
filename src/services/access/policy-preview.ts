import { AgentExecution_Phase as AgentPhase } from "#gen/service/v1/agent_pb.js";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  PreviewOrganizationPoliciesResponse_Outcome as Outcome,
  type UpdateOrganizationPoliciesRequest,
} from "#gen/service/v1/organization_service_pb.js";
import { type EnvironmentCounts, requireRunningQuota } from "../../domain/environment/environment-limit.ts";
import { requireLifetimeAllowsStart } from "../../domain/environment/environment-policy.ts";
import { DomainError } from "../../domain/error.ts";
import type { Caller, Role } from "../../domain/identity/caller.ts";
import type { ListedRow } from "../../domain/page.ts";
import { requireAgentAllowed, requireLocalRunnersAllowed } from "../../domain/policy/agent-policy.ts";
import { effectivePolicies, type Policies } from "../../domain/policy/policies.ts";
import { PolicyEffects } from "../../domain/policy/policy-effects.ts";
import { limitMs } from "../../domain/policy/policy-limit.ts";
import { requireEditorsAllowed } from "../../domain/project/project-policy.ts";
import { requireStepsAllowed, requireWorkflowAllowed } from "../../domain/workflow/workflow-policy.ts";
import { findAgentExecutionPage } from "../../store/agent/agent-execution-list.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import {
  type DueEnvironment,
  findArchivableIds,
  findDeletableIds,
} from "../../store/environment/environment-age.ts";
import { findEnvironmentPage } from "../../store/environment/environment-list.ts";
import { FEATURE_LEVEL } from "../../store/feature-level.ts";
import { isEnterprise } from "../../store/policy/enterprise.ts";
import { findProjectPage } from "../../store/project/project-list.ts";
import { findStoredRunner, isLocal } from "../../store/runner/runner-life.ts";
import { findRunnerPage } from "../../store/runner/runner-list.ts";
import type { Snapshot, Store } from "../../store/store.ts";
import { findWorkflowPage } from "../../store/workflow/workflow-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { yieldToEventLoop } from "../call/yield-to-event-loop.ts";
import { getExecutorAsCaller } from "../identity/executor.ts";
import { changedPolicies } from "../policy/organization-policies.ts";
import { previewRetentionEffects } from "./retention/retention-preview.ts";

/** Maximum number of resources checked per kind (contract, PreviewOrganizationPoliciesResponse.complete). */
const MAX_RESOURCES = 1_000;

/** Maximum total size in bytes of the resources checked per kind. */
const MAX_BYTES = 8 * 1024 * 1024;

const EVERY_PROJECT = {
  projectIds: [],
  search: "",
  runnerIds: [],
  runnerKinds: [],
  remoteUris: [],
  creatorIds: [],
  annotations: {},
};

/** A policy change whose effects are previewed. */
interface Preview extends Snapshot {
  readonly store: Pick<Store, "reader" | "longReader" | "lister" | "projectSearch">;
  readonly caller: Caller;
  readonly before: Policies;
  readonly after: Policies;
  readonly effects: PolicyEffects;
}

/**
 * Returns the effects that a change of policies would have. It uses the functions that enforce policies.
 * @throws DomainError as changedPolicies
 */
export async function previewPolicies(
  { store, now, retention }: Pick<ServiceDependencies, "store" | "now" | "retention">,
  caller: Caller,
  change: UpdateOrganizationPoliciesRequest,
) {
  const snapshot = { db: store.longReader, now: now() };
  const changed = await changedPolicies({ ...snapshot, featureLevel: FEATURE_LEVEL }, caller, change);
  const [before, after] = [changed.before, changed.after].map((each) =>
    effectivePolicies(caller.organizationId, each),
  ) as [Policies, Policies];
  const effects = new PolicyEffects(before, after);
  const preview = { ...snapshot, store, caller, before, after, effects };
  let complete = true;
  for (const previewPart of [
    previewAgeLimits,
    (each: Preview) => previewRetentionEffects(each, retention),
    previewEnvironments,
    previewWorkflows,
    previewAgentExecutions,
    previewRunners,
    previewProjects,
  ]) {
    if (!(await previewPart(preview))) complete = false;
  }
  return { effects: effects.all, complete };
}

/** Adds the environments that the jobs would archive or delete. @returns whether all resources were checked */
async function previewAgeLimits({ db, now, caller, before, after, effects }: Preview): Promise<boolean> {
  const jobs = [
    {
      fieldPath: "archiveEnvironmentsAfter",
      outcome: Outcome.ARCHIVED,
      find: findArchivableIds,
      isOn: await isEnterprise(db, caller),
    },
    {
      fieldPath: "deleteArchivedEnvironmentsAfter",
      outcome: Outcome.DELETED,
      find: findDeletableIds,
      isOn: true,
    },
  ] as const;
  let complete = true;
  for (const { fieldPath, outcome, find, isOn } of jobs) {
    const [old, limit] = [before, after].map(({ effective }) => limitMs(effective[fieldPath]));
    if (!isOn || limit === undefined || (old !== undefined && old <= limit)) continue;
    const due = await find(db, caller, now - limit, MAX_RESOURCES + 1);
    const isDueAnyway = await idsOf(old === undefined ? [] : find(db, caller, now - old, MAX_RESOURCES + 1));
    const rows = due.map(({ id, bytes }) => ({ bytes, read: () => findEnvironment(db, caller, id) }));
    const isAll = await forEachWithinLimit(rows, (each) => {
      if (isDueAnyway.has(each.id)) return;
      effects.addBackground(namedEnvironment(each), { fieldPath, outcome, resourceType: "environment" });
    });
    complete &&= isAll;
  }
  return complete;
}

async function previewEnvironments({ db, now, caller, effects }: Preview): Promise<boolean> {
  const none = { runnerIds: [], phases: [], creatorIds: [], projectIds: [], runnerKinds: [], sessionIds: [] };
  const filter = { ...none, createdBefore: undefined, search: "", archived: undefined };
  const order = { field: "id", direction: "asc" } as const;
  const rows = await findEnvironmentPage(db, caller, filter, order, undefined, MAX_RESOURCES + 1);
  const all: Environment[] = [];
  const complete = await forEachWithinLimit(rows, (environment) => void all.push(environment));
  const counts = new Map<string, EnvironmentCounts>();
  for (const { metadata, spec } of all) {
    const creatorId = metadata?.creator?.id ?? "";
    const { all: total, running } = counts.get(creatorId) ?? { all: 0, running: 0 };
    const runs = spec?.desiredPhase === EnvironmentPhase.RUNNING;
    counts.set(creatorId, { all: total + 1, running: running + (runs ? 1 : 0) });
  }
  const what = { operation: "EnvironmentService/StartEnvironment", resourceType: "environment" };
  for (const each of all) {
    const wanted = each.spec?.desiredPhase;
    if (wanted === EnvironmentPhase.RUNNING || wanted === EnvironmentPhase.DELETED) continue;
    const count = counts.get(each.metadata?.creator?.id ?? "") ?? { all: 0, running: 0 };
    effects.check(namedEnvironment(each), what, (policies) => {
      requireLifetimeAllowsStart(policies, each, now);
      requireRunningQuota(policies, count);
    });
  }
  return complete;
}

async function previewWorkflows(preview: Preview): Promise<boolean> {
  const { db, caller, effects } = preview;
  const lists = { workflowIds: [], creatorIds: [], phases: [] };
  const filter = { ...lists, search: "", failedSince: undefined, disabled: false };
  const order = { field: "id", direction: "asc" } as const;
  const rows = await findWorkflowPage(db, caller, filter, order, undefined, MAX_RESOURCES + 1);
  const what = { operation: "WorkflowService/StartWorkflow", resourceType: "workflow" };
  const roles = new Map<string, Role | undefined>();
  return forEachWithinLimit(rows, async (workflow) => {
    const { metadata, spec } = workflow;
    const executor = metadata?.executor;
    if (spec?.deleting || !executor) return;
    if (!roles.has(executor.id)) roles.set(executor.id, await roleOf(preview, executor));
    const role = roles.get(executor.id);
    // The executor may not act: a start fails regardless of the policies.
    if (!role) return;
    effects.check({ id: workflow.id, name: metadata.name }, what, (policies) => {
      for (const { context } of spec?.triggers ?? [])
        if (context) requireWorkflowAllowed(policies, workflow, context, role);
      requireAgentAllowed(policies, spec?.agentId ?? "");
      requireStepsAllowed(policies, spec?.action);
    });
  });
}

/** Returns the role of an executor; undefined for one that may not act. */
async function roleOf(
  { db, now, caller }: Preview,
  executor: Parameters<typeof getExecutorAsCaller>[2],
): Promise<Role | undefined> {
  try {
    return (await getExecutorAsCaller({ db, now }, caller, executor)).role;
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}

async function previewAgentExecutions({ db, caller, effects }: Preview): Promise<boolean> {
  const none = { ids: [], agentIds: [], projectIds: [], environmentIds: [], creatorIds: [], sessionIds: [] };
  const phases = [AgentPhase.PENDING, AgentPhase.RUNNING, AgentPhase.WAITING_FOR_INPUT];
  const filter = { ...none, phases, roles: [], annotations: {}, reader: undefined };
  const rows = await findAgentExecutionPage(db, caller, filter, undefined, MAX_RESOURCES + 1);
  // Resuming a run starts its agent again.
  const what = { operation: "AgentService/StartAgent", resourceType: "agent_execution" };
  return forEachWithinLimit(rows, ({ execution }) => {
    const name = execution.metadata?.name ?? "";
    effects.check({ id: execution.id, name }, what, (policies) =>
      requireAgentAllowed(policies, execution.spec?.agentId ?? ""),
    );
  });
}

async function previewRunners({ db, caller, effects, after }: Preview): Promise<boolean> {
  if (after.effective.allowLocalRunners) return true;
  const filter = { creatorIds: [], kinds: [] };
  const rows = await findRunnerPage(db, caller, filter, undefined, MAX_RESOURCES + 1);
  const what = { operation: "AgentService/StartAgent", resourceType: "runner" };
  return forEachWithinLimit(rows, async ({ runnerId, name }) => {
    const known = await findStoredRunner(db, caller, runnerId);
    if (known && isLocal(known)) effects.check({ id: runnerId, name }, what, requireLocalRunnersAllowed);
  });
}

async function previewProjects({ store, caller, effects, after }: Preview): Promise<boolean> {
  const { allowedEditorIds, editorVersionRestrictions } = after.effective;
  if (allowedEditorIds.length === 0 && Object.keys(editorVersionRestrictions).length === 0) return true;
  const order = { field: "id", direction: "asc" } as const;
  const page = {
    filter: EVERY_PROJECT,
    order,
    after: undefined,
    limit: MAX_RESOURCES + 1,
    countLimit: undefined,
  };
  const { projects } = await findProjectPage(store, caller, page, () => new AbortController().signal);
  const what = { operation: "ProjectService/UpdateProject", resourceType: "project" };
  return forEachWithinLimit(projects, ({ id, metadata, recommendedEditors }) => {
    if (!recommendedEditors) return;
    effects.check({ id, name: metadata?.name ?? "" }, what, (policies) =>
      requireEditorsAllowed(policies, recommendedEditors),
    );
  });
}

/**
 * Checks the resources of rows within the limits. It yields to the event loop in between, since each may have
 * megabytes.
 *
 * @returns whether all were checked
 */
async function forEachWithinLimit<T>(
  rows: readonly Pick<ListedRow<T>, "bytes" | "read">[],
  visit: (resource: T) => void | Promise<void>,
): Promise<boolean> {
  let bytes = 0;
  for (const row of rows.slice(0, MAX_RESOURCES)) {
    bytes += row.bytes;
    if (bytes > MAX_BYTES) return false;
    const resource = await row.read();
    if (resource !== undefined) await visit(resource);
    await yieldToEventLoop();
  }
  return rows.length <= MAX_RESOURCES;
}
async function idsOf(environments: Promise<DueEnvironment[]> | DueEnvironment[]): Promise<Set<string>> {
  return new Set((await environments).map(({ id }) => id));
}

function namedEnvironment({ id, metadata }: Environment) {
  return { id, name: metadata?.name ?? "" };
}
