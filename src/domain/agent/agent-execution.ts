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
import { type AgentProgress, showProgress } from "./agent-progress.ts";
import { type AgentEvent, isFinalAgent, transitionAgent } from "./agent-transitions.ts";

/** What a new run is made of. */
export interface AgentExecutionTemplate {
  readonly id: string;
  /** The mark of its first spec. */
  readonly session: string;
  readonly agentId: string;
  readonly creator: Subject;
  readonly role: AgentExecutionRole;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** The session that it belongs to. */
  readonly sessionId: string;
  /** The run that starts it as a sub-agent; empty for none. */
  readonly parentExecutionId: string;
  /** The action that it belongs to; undefined for none. */
  readonly workflowActionId: string | undefined;
  readonly codeContext: AgentCodeContext | undefined;
  /** Undefined for an agent that takes none. */
  readonly extAgentSettings: ExtAgentSettings | undefined;
  readonly environmentId: string;
  /** Whether the environment is made for it. */
  readonly madeEnvironment: boolean;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** A new run, which waits for its environment and a runner. */
export function newAgentExecution(template: AgentExecutionTemplate): AgentExecution {
  const { id, session, environmentId, codeContext, extAgentSettings, workflowActionId, now } = template;
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
      ...(workflowActionId !== undefined && { workflowActionId }),
    },
    spec: {
      specVersion: 1n,
      session,
      desiredPhase: Phase.RUNNING,
      agentId: template.agentId,
      ...(codeContext && { codeContext }),
      ...(extAgentSettings && { extAgentSettings }),
    },
    status: {
      statusVersion: 1n,
      session,
      phase: Phase.PENDING,
      usedEnvironments: [{ environmentId, createdByAgent: template.madeEnvironment }],
      ...(extAgentSettings && { extAgentSettings }),
    },
  });
}

export function phaseOfAgentExecution({ status }: AgentExecution): Phase {
  return status?.phase ?? Phase.UNSPECIFIED;
}

/** Whether nothing of it happens any more. */
export function hasStopped(execution: AgentExecution): boolean {
  return isFinalAgent(phaseOfAgentExecution(execution));
}

/** Whether it is to stop, or has been told to. */
export function isWantedStopped({ spec }: AgentExecution): boolean {
  return spec?.desiredPhase === Phase.STOPPED;
}

/** The run with its status changed by an event. @throws DomainError PHASE_UNSUITABLE for no legal move */
export function movedAgentExecution(
  present: AgentExecution,
  event: AgentEvent,
  change: (status: AgentExecution_Status, execution: AgentExecution) => void = () => undefined,
): AgentExecution {
  return changedAgentExecution(present, (status, execution) => {
    status.phase = transitionAgent(status.phase, event);
    change(status, execution);
  });
}

/** The run with something else in its status, in the same phase unless `change` says so. */
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

/** The run once a runner has a lease on it; undefined for one that waits for input, which goes on waiting. */
export function begunAgentExecution(present: AgentExecution): AgentExecution | undefined {
  return phaseOfAgentExecution(present) === Phase.PENDING ? movedAgentExecution(present, "begin") : undefined;
}

/** The run once its lease was lost; undefined for one that waits for input, or for a runner already. */
export function lostAgentExecution(present: AgentExecution): AgentExecution | undefined {
  return phaseOfAgentExecution(present) === Phase.RUNNING ? movedAgentExecution(present, "lose") : undefined;
}

/** The run told to stop, which somebody still works on; undefined when it was told before. */
export function stoppingAgentExecution(
  present: AgentExecution,
  { session, now }: { readonly session: string; readonly now: number },
): AgentExecution | undefined {
  if (isWantedStopped(present)) return undefined;
  const execution = clone(AgentExecutionSchema, present);
  wantStopped(execution, session, now);
  return execution;
}

/** Why a run failed. */
export interface AgentFailure {
  readonly reason: AgentExecutionFailureReason;
  /** For people. */
  readonly message: string;
}

/** How a run ended. */
export interface AgentExecutionEnd {
  /** "end": the agent's program did, by itself. "stop": it was told to. With a failure it failed, whichever. */
  readonly event: "end" | "stop";
  readonly failure?: AgentFailure | undefined;
  /** The mark of the new spec, should this be the first that wants it stopped. */
  readonly session: string;
  readonly now: number;
}

/** The run at its end. A failure that it was told to stop for stays the one that counts. */
export function stoppedAgentExecution(
  present: AgentExecution,
  { event, failure, session, now }: AgentExecutionEnd,
): AgentExecution {
  return movedAgentExecution(present, failure ? "fail" : event, (status, execution) => {
    if (!isWantedStopped(execution)) wantStopped(execution, session, now);
    status.session = execution.spec?.session ?? session;
    delete status.waitingInfo;
    if (failure) fail(status, failure);
  });
}

/** The run with why it is being stopped, which somebody still works on. */
export function failingAgentExecution(present: AgentExecution, failure: AgentFailure): AgentExecution {
  return changedAgentExecution(present, (status) => fail(status, failure));
}

/** The run as it is answered: with what the row keeps apart. */
export function withProgress(
  stored: AgentExecution,
  progress: AgentProgress,
  subagents: readonly AgentExecution_Status_Subagent[],
): AgentExecution {
  const execution = clone(AgentExecutionSchema, stored);
  if (execution.status) {
    showProgress(execution.status, progress);
    execution.status.subagents = [...subagents];
  }
  return execution;
}

function fail(status: AgentExecution_Status, { reason, message }: AgentFailure): void {
  if (status.failureMessage !== "") return;
  status.failureReason = reason;
  status.failureMessage = message;
}

function wantStopped(execution: AgentExecution, session: string, now: number): void {
  const { metadata, spec } = execution;
  if (!spec) throw new Error(`the agent run ${execution.id} has no spec`);
  spec.desiredPhase = Phase.STOPPED;
  spec.specVersion += 1n;
  spec.session = session;
  if (metadata) metadata.updatedAt = timestampFromMs(now);
}
