import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentCodeContext,
  type AgentExecution,
  type AgentExecution_Status,
  type AgentExecution_Status_Subagent,
  type AgentExecutionFailureReason,
  type AgentExecutionRole,
  AgentExecutionSchema,
  type ExtAgentSettings,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { phaseUnsuitable } from "../error.ts";
import type { TraceParent } from "../trace/trace-context.ts";
import { type AgentProgress, applyProgress } from "./agent-progress.ts";
import { type AgentEvent, isFinalAgentPhase, transitionAgentPhase } from "./agent-transitions.ts";

/** The values that a new execution is created from. */
export interface AgentExecutionTemplate {
  readonly id: string;
  /** Session of the first version of its spec. */
  readonly session: string;
  readonly agentId: string;
  readonly creator: Subject;
  readonly role: AgentExecutionRole;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** Id of the session that it belongs to. */
  readonly sessionId: string;
  /** Id of the execution that starts it as a sub-agent; empty for none. */
  readonly parentExecutionId: string;
  /** Id of the workflow action that it belongs to; undefined for none. */
  readonly workflowActionId: string | undefined;
  readonly codeContext: AgentCodeContext | undefined;
  /** Undefined for an agent that takes no settings. */
  readonly extAgentSettings: ExtAgentSettings | undefined;
  /** True if its queue is held after a lost turn until somebody decides. Default false. */
  readonly holdAfterLostTurn?: boolean;
  readonly environmentId: string;
  /** True when the environment is created for it. */
  readonly createdEnvironment: boolean;
  /** The execution whose conversation it continues; undefined for none. */
  readonly earlier?: EarlierRun | undefined;
  /** The trace that it belongs to; undefined for none. */
  readonly trace?: TraceParent | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** An earlier execution whose conversation a new one continues. */
interface EarlierRun {
  readonly id: string;
  /** Number of its last block. */
  readonly sequence: number;
  /** Id of the first execution of the conversation. */
  readonly conversationId: string;
  /** True if the new execution forks the conversation, and so begins one of its own. */
  readonly isFork: boolean;
}

/** Returns a new execution, which waits for its environment and a runner. */
export function newAgentExecution(template: AgentExecutionTemplate): AgentExecution {
  const { id, session, environmentId, codeContext, extAgentSettings, workflowActionId, earlier, now } =
    template;
  const at = timestampFromMs(now);
  return create(AgentExecutionSchema, {
    id,
    metadata: {
      name: template.name,
      creator: template.creator,
      createdAt: at,
      updatedAt: at,
      role: template.role,
      annotations: { ...template.annotations },
      sessionId: template.sessionId,
      parentExecutionId: template.parentExecutionId,
      ...(template.trace && { trace: template.trace }),
      ...(workflowActionId !== undefined && { workflowActionId }),
      ...(earlier && {
        ...(earlier.isFork
          ? { forkedFrom: earlier.id }
          : { resumedFrom: earlier.id, conversationId: earlier.conversationId }),
        earlierSequence: BigInt(earlier.sequence),
      }),
    },
    spec: {
      specVersion: 1n,
      session,
      desiredPhase: Phase.RUNNING,
      agentId: template.agentId,
      ...(codeContext && { codeContext }),
      ...(extAgentSettings && { extAgentSettings }),
      holdAfterLostTurn: template.holdAfterLostTurn ?? false,
    },
    status: {
      statusVersion: 1n,
      session,
      phase: Phase.PENDING,
      usedEnvironments: [{ environmentId, createdByAgent: template.createdEnvironment }],
      ...(extAgentSettings && { extAgentSettings }),
    },
  });
}

export function phaseOfAgentExecution({ status }: AgentExecution): Phase {
  return status?.phase ?? Phase.UNSPECIFIED;
}

/** Returns whether it has ended, so that nothing changes it any more. */
export function hasStopped(execution: AgentExecution): boolean {
  return isFinalAgentPhase(phaseOfAgentExecution(execution));
}

/** Returns whether its desired phase is stopped. */
export function isStopRequested({ spec }: AgentExecution): boolean {
  return spec?.desiredPhase === Phase.STOPPED;
}

/**
 * Requires that it accepts input.
 * @throws DomainError PHASE_UNSUITABLE for one that has stopped or is to stop
 */
export function requireTakesInput(execution: AgentExecution): void {
  if (hasStopped(execution))
    throw unsuitable(execution, "the agent run has stopped: start another with StartAgent");
  if (isStopRequested(execution)) {
    throw unsuitable(execution, "the agent run is being stopped: start another with StartAgent");
  }
}

/**
 * Requires that it may start sub-agents.
 * @throws DomainError PHASE_UNSUITABLE for one that has stopped or is to stop
 */
export function requireMayStartSubagents(execution: AgentExecution): void {
  if (!hasStopped(execution) && !isStopRequested(execution)) return;
  throw unsuitable(execution, "the agent run is stopping and can start no sub-agents");
}

/**
 * Requires that it may be deleted.
 * @throws DomainError PHASE_UNSUITABLE for one that has not stopped
 */
export function requireAgentExecutionStopped(execution: AgentExecution): void {
  if (hasStopped(execution)) return;
  throw unsuitable(execution, "the agent run has not stopped: stop it with StopAgentExecution first");
}

function unsuitable(execution: AgentExecution, message: string) {
  return phaseUnsuitable("agent execution", Phase[phaseOfAgentExecution(execution)] ?? "", message);
}

/**
 * Returns the execution with its status changed by an event.
 * @throws DomainError PHASE_UNSUITABLE for an illegal transition
 */
export function transitionedAgentExecution(
  present: AgentExecution,
  event: AgentEvent,
  change: (status: AgentExecution_Status, execution: AgentExecution) => void = () => undefined,
): AgentExecution {
  return changedAgentExecution(present, (status, execution) => {
    status.phase = transitionAgentPhase(status.phase, event);
    change(status, execution);
  });
}

/** Returns the execution with a changed status, in the same phase unless `change` sets another. */
export function changedAgentExecution(
  present: AgentExecution,
  change: (status: AgentExecution_Status, execution: AgentExecution) => void,
): AgentExecution {
  const execution = clone(AgentExecutionSchema, present);
  const { status } = execution;
  if (!status) throw new Error(`the agent run ${present.id} has no status`);
  status.statusVersion += 1n;
  change(status, execution);
  return execution;
}

/**
 * Returns the execution after a runner has leased it, so that it no longer waits for a runner. Undefined for one that
 * waits for input, which keeps waiting.
 */
export function begunAgentExecution(present: AgentExecution): AgentExecution | undefined {
  if (phaseOfAgentExecution(present) !== Phase.PENDING) return warnedAgentExecution(present, "");
  return transitionedAgentExecution(present, "begin", (status) => {
    status.warningMessage = "";
  });
}

/** Returns the execution with its warning replaced, or removed for ""; undefined when nothing changes. */
export function warnedAgentExecution(present: AgentExecution, warning: string): AgentExecution | undefined {
  if (hasStopped(present) || (present.status?.warningMessage ?? "") === warning) return undefined;
  return changedAgentExecution(present, (status) => {
    status.warningMessage = warning;
  });
}

/**
 * Returns the execution after its lease was lost; undefined for one that waits for input, or
 * already for a runner.
 */
export function lostAgentExecution(present: AgentExecution): AgentExecution | undefined {
  return phaseOfAgentExecution(present) === Phase.RUNNING
    ? transitionedAgentExecution(present, "lose")
    : undefined;
}

/**
 * Returns the execution with the desired phase stopped, while a runner still works on it; undefined when that is its
 * desired phase already.
 */
export function stoppingAgentExecution(
  present: AgentExecution,
  { session, now }: { readonly session: string; readonly now: number },
): AgentExecution | undefined {
  if (isStopRequested(present)) return undefined;
  const execution = clone(AgentExecutionSchema, present);
  requestStop(execution, session, now);
  return execution;
}

/** The reason why an execution failed. */
export interface AgentFailure {
  readonly reason: AgentExecutionFailureReason;
  /** Text for people. */
  readonly message: string;
}

/** The way in which an execution ended. */
export interface AgentExecutionEnd {
  /**
   * "end": the agent's program ended by itself. "stop": it was stopped on request. With a failure
   * the execution failed in either case.
   */
  readonly event: "end" | "stop";
  readonly failure?: AgentFailure | undefined;
  /** Session of the new spec, used when this is the first spec that wants it stopped. */
  readonly session: string;
  readonly now: number;
}

/**
 * Returns the execution at its end. When it was stopped because of a failure, that failure is kept.
 */
export function stoppedAgentExecution(
  present: AgentExecution,
  { event, failure, session, now }: AgentExecutionEnd,
): AgentExecution {
  return transitionedAgentExecution(present, failure ? "fail" : event, (status, execution) => {
    if (!isStopRequested(execution)) requestStop(execution, session, now);
    status.session = execution.spec?.session ?? session;
    delete status.waitingInfo;
    if (failure) fail(status, failure);
  });
}

/**
 * Returns the execution with the failure for which it is being stopped, while a runner still works
 * on it.
 */
export function failingAgentExecution(present: AgentExecution, failure: AgentFailure): AgentExecution {
  return changedAgentExecution(present, (status) => fail(status, failure));
}

/** Returns the execution as responses show it: with the progress that the row stores separately. */
export function withProgress(
  stored: AgentExecution,
  progress: AgentProgress,
  subagents: readonly AgentExecution_Status_Subagent[],
  pendingApprovalIds: readonly string[] = [],
): AgentExecution {
  const execution = clone(AgentExecutionSchema, stored);
  if (execution.status) {
    applyProgress(execution.status, progress);
    execution.status.subagents = [...subagents];
    execution.status.pendingApprovalIds = [...pendingApprovalIds];
  }
  return execution;
}

function fail(status: AgentExecution_Status, { reason, message }: AgentFailure): void {
  if (status.failureMessage !== "") return;
  status.failureReason = reason;
  status.failureMessage = message;
}

function requestStop(execution: AgentExecution, session: string, now: number): void {
  const { metadata, spec } = execution;
  if (!spec) throw new Error(`the agent run ${execution.id} has no spec`);
  spec.desiredPhase = Phase.STOPPED;
  spec.specVersion += 1n;
  spec.session = session;
  if (metadata) metadata.updatedAt = timestampFromMs(now);
}
