import { WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  type AgentCodeContext,
  type AgentExecutionRole,
  AgentMode,
  type ExtAgentSettings,
  AgentExecution_Phase as Phase,
  type TurnOptions,
} from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { carriesAgents } from "../../domain/agent/agent-environment.ts";
import { newAgentExecution, phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import { firstProgress } from "../../domain/agent/agent-progress.ts";
import type { RegisteredAgent } from "../../store/agent/agent.ts";
import { insertAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findWork, insertWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** What a run is started with. Whoever starts it has held it against the policies. */
export interface AgentExecutionStart {
  readonly agent: RegisteredAgent;
  readonly creator: Subject;
  /** The account that answers for it; null for a service account's. */
  readonly accountId: string | null;
  readonly role: AgentExecutionRole;
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Empty makes a session. */
  readonly sessionId: string;
  /** Where it works. */
  readonly environment: Environment;
  /** Whether the environment was made for it. */
  readonly madeEnvironment: boolean;
  /** The runner that it is routed to; left out or null follows the environment. */
  readonly runnerId?: string | null;
  readonly codeContext?: AgentCodeContext | undefined;
  /** Unspecified means execution. */
  readonly mode: AgentMode;
  /** Left out for an agent that takes none, whatever was asked for. */
  readonly extAgentSettings?: ExtAgentSettings | undefined;
  /** Options of its first turn. */
  readonly firstTurn?: TurnOptions | undefined;
  /** The run that starts it as a sub-agent, and that run's word for it. */
  readonly parent?: { readonly id: string; readonly startKey: string | null };
  /** The action that it belongs to, and which of its steps it carries out; null for none of them. */
  readonly action?: { readonly id: string; readonly stepKey: string | null } | undefined;
}

/** Starts a run: it is pending until its environment is up and a runner takes it on. */
export async function insertStartedAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  start: AgentExecutionStart,
): Promise<StoredAgentExecution> {
  const { agent, environment, madeEnvironment, parent, action } = start;
  const { takesSettings } = agent.agent;
  const execution = newAgentExecution({
    id: tx.newId(),
    session: tx.newId(),
    agentId: agent.agent.id,
    creator: start.creator,
    role: start.role,
    name: start.name,
    annotations: start.annotations ?? {},
    sessionId: start.sessionId || tx.newId(),
    parentExecutionId: parent?.id ?? "",
    workflowActionId: action?.id,
    codeContext: start.codeContext,
    extAgentSettings: takesSettings ? start.extAgentSettings : undefined,
    environmentId: environment.id,
    madeEnvironment,
    now: tx.now,
  });
  const facts = {
    progress: firstProgress(start.mode || AgentMode.EXECUTION),
    accountId: start.accountId,
    environmentId: environment.id,
    madeEnvironment,
    runnerId: start.runnerId || null,
    stepKey: action?.stepKey ?? null,
  };
  await insertAgentExecution(tx, scope, execution, {
    ...facts,
    projectId: environment.metadata?.projectId || null,
    startKey: parent?.startKey || null,
    firstTurn: start.firstTurn,
  });
  const stored = { execution, ...facts, queueRevision: 0, lastSequence: 0 };
  if (carriesAgents(environment)) await queueAgentExecution(tx, scope, stored, environment);
  return stored;
}

/** Gives a pending run to the queue of work, unless it is there already; its environment must be up. */
export async function queueAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution, accountId, runnerId }: StoredAgentExecution,
  environment: Environment,
): Promise<void> {
  if (phaseOfAgentExecution(execution) !== Phase.PENDING) return;
  if (await findWork(tx.db, WorkKind.AGENT, execution.id)) return;
  await insertWork(tx, {
    organizationId: scope.organizationId,
    kind: WorkKind.AGENT,
    subjectId: execution.id,
    groupId: execution.metadata?.creator?.id ?? "",
    accountId,
    runnerId: runnerId ?? (environment.metadata?.runnerId || null),
    environmentClassId: null,
  });
}
