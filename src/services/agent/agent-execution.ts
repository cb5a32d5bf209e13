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
import { canRunAgents } from "../../domain/agent/agent-environment.ts";
import { newAgentExecution, phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import { initialProgress } from "../../domain/agent/agent-progress.ts";
import type { ForkPoint } from "../../domain/agent/conversation/agent-fork.ts";
import type { TraceParent } from "../../domain/trace/trace-context.ts";
import type { RegisteredAgent } from "../../store/agent/agent.ts";
import type { EarlierExecution } from "../../store/agent/agent-conversation.ts";
import { insertAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findWork, insertWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { newTrace } from "../call/new-trace.ts";
import { requireRunnerForAgent } from "./definition/api-agent-runner.ts";

/** The conversation that a new agent execution continues. */
export interface EarlierConversation extends EarlierExecution {
  /** Id of the first agent execution of the conversation. */
  readonly conversationId: string;
}

/** The parameters of a new agent execution. The caller must have checked them against the policies. */
export interface AgentExecutionStart {
  readonly agent: RegisteredAgent;
  readonly creator: Subject;
  /** The account that is responsible for it; null for a service account. */
  readonly accountId: string | null;
  readonly role: AgentExecutionRole;
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Session id; empty for a new session. */
  readonly sessionId: string;
  /** Environment in which it works. */
  readonly environment: Environment;
  /** True when the environment was created for it. */
  readonly createdEnvironment: boolean;
  /** Id of the requested runner; null or absent for the runner of the environment. */
  readonly runnerId?: string | null;
  readonly codeContext?: AgentCodeContext | undefined;
  /** Unspecified means execution. */
  readonly mode: AgentMode;
  /** Settings; ignored for an agent that accepts none. */
  readonly extAgentSettings?: ExtAgentSettings | undefined;
  /** True to hold its queue after a lost turn until somebody decides. Default false. */
  readonly holdAfterLostTurn?: boolean;
  /** Options of its first turn. */
  readonly firstTurn?: TurnOptions | undefined;
  /** The agent execution that starts it as a sub-agent, and the key of that start. */
  readonly parent?: { readonly id: string; readonly startKey: string | null };
  /** The trace that it belongs to; absent for none. */
  readonly trace?: TraceParent | undefined;
  /** The conversation that it continues. */
  readonly earlier?: EarlierConversation | undefined;
  /** The point at which its agent forks that conversation; undefined to continue it. */
  readonly fork?: ForkPoint | undefined;
  /** The action that it belongs to, and the key of the step that it executes; null for none. */
  readonly action?: { readonly id: string; readonly stepKey: string | null } | undefined;
}

/** Inserts an agent execution. It is pending until its environment is running and a runner leases it. */
export async function insertStartedAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  start: AgentExecutionStart,
): Promise<StoredAgentExecution> {
  const { agent, environment, createdEnvironment, parent, action, earlier } = start;
  const { takesSettings } = agent.agent;
  const id = tx.newId();
  await requireRunnerForAgent(tx.db, scope, agent, start.runnerId || environment.metadata?.runnerId || "");
  const started = newAgentExecution({
    id,
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
    holdAfterLostTurn: start.holdAfterLostTurn ?? false,
    environmentId: environment.id,
    createdEnvironment,
    earlier,
    trace: start.trace ?? newTrace(tx, id),
    now: tx.now,
  });
  const facts = {
    progress: {
      ...initialProgress(start.mode || AgentMode.EXECUTION),
      ...(start.fork && { fork: start.fork }),
    },
    accountId: start.accountId,
    environmentId: environment.id,
    createdEnvironment,
    runnerId: start.runnerId || null,
    stepKey: action?.stepKey ?? null,
    earlier,
  };
  const execution = await insertAgentExecution(tx, scope, started, {
    ...facts,
    projectId: environment.metadata?.projectId || null,
    startKey: parent?.startKey || null,
    firstTurn: start.firstTurn,
  });
  const stored = { execution, ...facts, queueRevision: 0, lastSequence: earlier?.sequence ?? 0 };
  if (canRunAgents(environment)) await queueAgentExecution(tx, scope, stored, environment);
  return stored;
}

/** Queues the work of a pending agent execution, unless it is queued already. Its environment must be running. */
export async function queueAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  { execution, accountId, runnerId }: StoredAgentExecution,
  environment: Environment,
): Promise<void> {
  if (phaseOfAgentExecution(execution) !== Phase.PENDING) return;
  if (await findWork(tx.db, scope, WorkKind.AGENT, execution.id)) return;
  await insertWork(tx, scope, {
    kind: WorkKind.AGENT,
    subjectId: execution.id,
    groupId: execution.metadata?.creator?.id ?? "",
    accountId,
    runnerId: runnerId ?? (environment.metadata?.runnerId || null),
    environmentClassId: null,
  });
}
