import { create } from "@bufbuild/protobuf";
import { AgentWorkSchema, WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import {
  begunAgentExecution,
  isStopRequested,
  phaseOfAgentExecution,
  warnedAgentExecution,
} from "../../../domain/agent/agent-execution.ts";
import {
  assignedEnvironment,
  failedEnvironment,
  needsWork,
} from "../../../domain/environment/environment-phase.ts";
import { findAgent } from "../../../store/agent/agent.ts";
import {
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../../store/agent/agent-execution.ts";
import { findOpenAgentExecutionsIn } from "../../../store/agent/agent-execution-search.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import {
  hasEnvironmentWork,
  kindWithAgent,
  queueEnvironmentWork,
} from "../../../store/environment/environment-work.ts";
import { removeWork, type StoredWork } from "../../../store/runner/work.ts";
import { releaseWork, turnIntoEnvironmentWork } from "../../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { changeEnvironment } from "../../environment/environment-change.ts";
import {
  environmentFailureIn,
  environmentWork,
  reportEnvironment,
} from "../../environment/environment-work.ts";
import { findUsablePrebuildId } from "../../project/prebuild-selection.ts";
import { MAX_ATTEMPTS } from "../../runner/held-lease.ts";
import type { LeaseEnd, WorkHandler, WorkProgress } from "../../runner/work-handler.ts";
import { endAgentExecution } from "../halt-agent-execution.ts";
import { AGENT_UNREGISTERED, API_AGENT_NOT_ALLOWED, toAgentWork } from "./agent-assignment.ts";

/**
 * Handles work on a new environment together with the agent execution that it was created for. Once leased, it is
 * work on the agent execution, which stays pending until its environment is running.
 */
export const agentWithEnvironmentWork: WorkHandler = {
  ...environmentWork,

  async warn(tx, scope, work, wait) {
    await environmentWork.warn?.(tx, scope, work, wait);
    const stored = await findWaitingExecution(tx, scope, work.subject_id);
    if (stored) await warnAgentExecution(tx, scope, stored, wait.message);
  },

  async begin(tx, scope, { work, runnerId, apiAgents }) {
    const before = await findEnvironment(tx.db, scope, work.subject_id);
    if (!before || !needsWork(before)) {
      await removeWork(tx, work.id);
      return undefined;
    }
    const stored = await findWaitingExecution(tx, scope, before.id);
    if (!stored) {
      // It has stopped; others work in the environment.
      await turnIntoEnvironmentWork(tx, work.id, WorkKind.ENVIRONMENT, before.id);
      return undefined;
    }
    const agent = await findAgent(tx.db, scope, stored.execution.spec?.agentId ?? "");
    if (!agent) {
      const { id } = stored.execution;
      await endAgentExecution(tx, scope, id, { event: "stop", failure: AGENT_UNREGISTERED });
      return undefined;
    }
    if (agent.agent.definition && !apiAgents) {
      const { id } = stored.execution;
      await endAgentExecution(tx, scope, id, { event: "stop", failure: API_AGENT_NOT_ALLOWED });
      return undefined;
    }
    const environment = assignedEnvironment(before, runnerId);
    await changeEnvironment(tx, scope, before, environment);
    const value = await toAgentWork(tx, scope, stored, environment, agent);
    const prebuildId = await findUsablePrebuildId(tx.db, scope, environment);
    return {
      work: { case: "agent", value: create(AgentWorkSchema, { ...value, prebuildId }) },
      environment,
      securityPolicyId: environment.spec?.securityPolicyId ?? "",
      sharesEnvironment: true,
      // Bound to the runner, since the environment is on its machine.
      leasedAs: { kind: WorkKind.AGENT, subject_id: stored.execution.id, runner_id: runnerId },
    };
  },
};

/** Adds a warning to an agent execution that says what it waits for. */
export async function warnAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution }: StoredAgentExecution,
  message: string,
): Promise<void> {
  const warned = warnedAgentExecution(execution, message);
  if (warned) await updateAgentExecution(tx, scope, execution, warned);
}

async function findWaitingExecution(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<StoredAgentExecution | undefined> {
  const open = await findOpenAgentExecutionsIn(tx.db, scope, environmentId);
  return open.find(({ createdEnvironment, execution }) => createdEnvironment && !isStopRequested(execution));
}

/** Returns the environment that must be started before a leased agent execution can begin; undefined once it has begun. */
export async function findUnstartedEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  { execution, environmentId }: StoredAgentExecution,
): Promise<Environment | undefined> {
  if (phaseOfAgentExecution(execution) !== Phase.PENDING) return undefined;
  const environment = await findEnvironment(tx.db, scope, environmentId);
  return environment && needsWork(environment) ? environment : undefined;
}

/**
 * Applies a report on the environment of a leased agent execution. The execution begins when the environment is
 * running.
 *
 * @returns the agent execution after the report
 */
export async function reportEnvironmentOfAgent(
  tx: WriteTransaction,
  scope: Scope,
  stored: StoredAgentExecution,
  progress: WorkProgress["environment"],
): Promise<StoredAgentExecution> {
  const environment = await reportEnvironment(tx, scope, stored.environmentId, progress);
  if (!environment || needsWork(environment)) return stored;
  const begun = begunAgentExecution(stored.execution);
  return begun
    ? { ...stored, execution: await updateAgentExecution(tx, scope, stored.execution, begun) }
    : stored;
}

/**
 * Ends a lease under which the environment did not start. A lost lease is followed by another attempt; otherwise the
 * environment and its agent execution have failed.
 */
export async function endWithoutEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredWork,
  before: Environment,
  end: LeaseEnd,
): Promise<void> {
  const isFailure = end.kind === "finished" && end.outcome.outcome === Outcome.FAILED;
  if (!isFailure && lease.attempt < MAX_ATTEMPTS) {
    const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
    const agent = await findAgent(tx.db, scope, stored?.execution.spec?.agentId ?? "");
    const kind = kindWithAgent(agent?.agent.definition !== undefined);
    await turnIntoEnvironmentWork(tx, lease.id, kind, before.id);
    return releaseWork(tx, lease.id);
  }
  await removeWork(tx, lease.id);
  await changeEnvironment(tx, scope, before, failedEnvironment(before, environmentFailureIn(lease, end)));
}

/** Queues the work on an environment that an ended lease should have started. */
export async function queueAfterUnmade(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
): Promise<void> {
  const environment = await findEnvironment(tx.db, scope, environmentId);
  if (!environment || (await hasEnvironmentWork(tx.db, scope, environment))) return;
  await queueEnvironmentWork(tx, scope, environment);
}
