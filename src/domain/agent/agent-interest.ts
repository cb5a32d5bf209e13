import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ReportAgentRequest_Interest as ReportedInterest,
  ReportAgentRequest_State as ReportedState,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type AgentExecution_WaitingInfo_Interest as Interest,
  AgentExecution_WaitingInfo_InterestSchema as InterestSchema,
  type AgentExecution_WaitingInfo as WaitingInfo,
  AgentExecution_WaitingInfoSchema as WaitingInfoSchema,
} from "#gen/service/v1/agent_pb.js";
import { type Environment, EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { type DomainError, valueUnusable } from "../error.ts";

const MS_PER_S = 1_000;

/**
 * Requires that a report contains interests only if its agent is waiting.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireWaiting(reported: readonly ReportedInterest[], state: ReportedState): void {
  if (reported.length === 0 || state === ReportedState.WAITING) return;
  throw valueUnusable("interests", "interests are registered with STATE_WAITING");
}

/**
 * Requires that interests have different ids, and that `userMessage` is true wherever it is set.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireValidInterests(reported: readonly ReportedInterest[]): void {
  for (const [index, { id, interest }] of reported.entries()) {
    const path = `interests[${index}]`;
    if (reported.findIndex((other) => other.id === id) !== index) {
      throw valueUnusable(`${path}.id`, "two interests have the same id: give each its own");
    }
    if (interest.case === "userMessage" && !interest.value) {
      throw valueUnusable(`${path}.userMessage`, `${path}.userMessage is true, or left out`);
    }
  }
}

/** Returns the error for an interest in something that the agent execution cannot await; `path` is that of its id. */
export function interestUnusable(path: string, lacking: string): DomainError {
  return valueUnusable(path, `${path} names no ${lacking}`);
}

/**
 * Returns the waiting info of an execution as its status shows it; `now` in milliseconds since 1970
 * UTC.
 */
export function newWaitingInfo(
  waitId: string,
  reported: readonly ReportedInterest[],
  now: number,
): WaitingInfo | undefined {
  if (reported.length === 0) return undefined;
  const interests = reported.map((each) => toInterest(each, now));
  return create(WaitingInfoSchema, { waitId, interests, waitingSince: timestampFromMs(now) });
}

function toInterest({ id, interest }: ReportedInterest, now: number): Interest {
  switch (interest.case) {
    case "timer": {
      const waitMs = durationMs(interest.value);
      const timer = { duration: `${waitMs / MS_PER_S}s`, firesAt: timestampFromMs(now + waitMs) };
      return create(InterestSchema, { id, interest: { case: "timer", value: timer } });
    }
    case "subAgentId":
      return create(InterestSchema, {
        id,
        interest: { case: "subAgent", value: { executionId: interest.value } },
      });
    case "environment": {
      const { environmentId, phase } = interest.value;
      return create(InterestSchema, {
        id,
        interest: { case: "environment", value: { environmentId, phase } },
      });
    }
    default:
      return create(InterestSchema, { id, interest: { case: "userMessage", value: {} } });
  }
}

/** An interest as it is stored for look-up; the columns are those of AgentInterestTable. */
export interface InterestRow {
  readonly interest_id: string;
  readonly fires_at: number | null;
  readonly sub_agent_id: string | null;
  readonly user_message: number;
  readonly environment_id: string | null;
  readonly environment_phase: string | null;
}

/** Returns the row of an interest that is registered at `now`, in milliseconds since 1970 UTC. */
export function interestRow({ id, interest }: ReportedInterest, now: number): InterestRow {
  const environment = interest.case === "environment" ? interest.value : undefined;
  return {
    interest_id: id,
    fires_at: interest.case === "timer" ? now + durationMs(interest.value) : null,
    sub_agent_id: interest.case === "subAgentId" ? interest.value : null,
    user_message: interest.case === "userMessage" ? 1 : 0,
    environment_id: environment?.environmentId ?? null,
    environment_phase: environment?.phase ?? null,
  };
}

/** Returns the remaining waiting info after interests have fired; undefined when none remains. */
export function remainingWaitingInfo(
  present: WaitingInfo | undefined,
  fired: readonly string[],
): WaitingInfo | undefined {
  const interests = present?.interests.filter(({ id }) => !fired.includes(id)) ?? [];
  return present && interests.length > 0 ? { ...present, interests } : undefined;
}

/** A phase of an environment that interests can name. */
export type AwaitedPhase = "running" | "stopped" | "deleted";

/** The outcome of an environment's change for executions that wait for a phase of it. */
export interface WaitResult {
  readonly phase: AwaitedPhase;
  /** Reasons why the phase will not be reached; empty when it was reached. */
  readonly failureMessages: readonly string[];
}

const AWAITED_PHASES: ReadonlyMap<Phase, AwaitedPhase> = new Map([
  [Phase.RUNNING, "running"],
  [Phase.STOPPED, "stopped"],
  [Phase.DELETED, "deleted"],
]);

/**
 * Returns the phase that an environment is in, as interests name it; undefined while it is between
 * two of them.
 */
export function awaitedPhase({ status }: Environment): AwaitedPhase | undefined {
  return AWAITED_PHASES.get(status?.phase ?? Phase.UNSPECIFIED);
}

/**
 * Returns the waits that a change of an environment ends: first the wait for the phase that it
 * reached, then those for phases that it will not reach.
 * @param after undefined for an environment that was removed
 */
export function endedWaits(before: Environment, after: Environment | undefined): WaitResult[] {
  const reached = after ? awaitedPhase(after) : "deleted";
  if (reached === undefined || reached === awaitedPhase(before)) return [];
  const ended = { phase: reached, failureMessages: [] };
  if (reached === "deleted") {
    const failureMessages = ["the environment was deleted"];
    return [ended, { phase: "running", failureMessages }, { phase: "stopped", failureMessages }];
  }
  // Its desired phase was running until it failed: it is not retried unless somebody starts it.
  const isGivenUp = reached === "stopped" && before.spec?.desiredPhase === Phase.RUNNING;
  const failureMessages = after?.status?.failureMessage ?? [];
  return isGivenUp && failureMessages.length > 0 ? [ended, { phase: "running", failureMessages }] : [ended];
}
