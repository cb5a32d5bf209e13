import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Failure, FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { AgentOutputBlockSchema, AgentExecutionFailureReason as Reason } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  type AgentFailure,
  begunAgentExecution,
  hasStopped,
  isStopRequested,
  lostAgentExecution,
} from "../../../domain/agent/agent-execution.ts";
import { failureOfAgent } from "../../../domain/agent/agent-failure.ts";
import { leaseLost } from "../../../domain/error.ts";
import { requireNoSteps } from "../../../domain/runner/lease.ts";
import { addressesOf } from "../../../domain/source/initializer-address.ts";
import { sourceKindsOf, uniqueSubjects } from "../../../domain/source/source-trust.ts";
import { findAgent, type RegisteredAgent } from "../../../store/agent/agent.ts";
import { hasUnseenInput } from "../../../store/agent/agent-delivery.ts";
import {
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../../store/agent/agent-execution.ts";
import { appendOutput } from "../../../store/agent/agent-output.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import { findSourceSetters } from "../../../store/identity/source-setter.ts";
import type { StoredWork } from "../../../store/runner/work.ts";
import { removeWork, STOP_GIVE_BACK } from "../../../store/runner/work.ts";
import { releaseWork, resetAttempts } from "../../../store/runner/work-lease.ts";
import type { Handle, Scope, WriteTransaction } from "../../../store/store.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import { MAX_ATTEMPTS } from "../../runner/held-lease.ts";
import type { LeaseEnd, WorkHandler } from "../../runner/work-handler.ts";
import { findExecutorAssigner } from "../../workflow/execution/executor-assigner.ts";
import { recordLostTurn } from "../agent-lost-turn.ts";
import { restAgentExecution, takeSlot } from "../agent-slot.ts";
import { endAgentExecution } from "../halt-agent-execution.ts";
import { AGENT_UNREGISTERED, API_AGENT_NOT_ALLOWED, toAgentWork } from "./agent-assignment.ts";
import {
  endWithoutEnvironment,
  findUnstartedEnvironment,
  queueAfterUnmade,
  reportEnvironmentOfAgent,
  warnAgentExecution,
} from "./agent-with-environment-work.ts";

/** The handler of the work to run an agent in a running environment. */
export const agentWork: WorkHandler = {
  async begin(tx, scope, { work, apiAgents }) {
    const stored = await findAgentExecution(tx.db, scope, work.subject_id);
    if (!stored || hasStopped(stored.execution)) {
      await removeWork(tx, work.id);
      return undefined;
    }
    const environment = await findEnvironment(tx.db, scope, stored.environmentId);
    const agent = await findAgent(tx.db, scope, stored.execution.spec?.agentId ?? "");
    const isTaken = !agent?.agent.definition || apiAgents;
    if (!environment || !agent || !isTaken) {
      await removeWork(tx, work.id);
      const failure = beginFailure(environment, agent);
      await endAgentExecution(tx, scope, work.subject_id, { event: "stop", failure });
      return undefined;
    }
    const begun = begunAgentExecution(stored.execution);
    const execution = begun
      ? await updateAgentExecution(tx, scope, stored.execution, begun)
      : stored.execution;
    const idleSince = await takeSlot(tx, stored);
    return {
      ...(idleSince !== undefined && { idleSince }),
      work: {
        case: "agent",
        value: await toAgentWork(tx, scope, { ...stored, execution }, environment, agent),
      },
      environment,
      securityPolicyId: environment.spec?.securityPolicyId ?? "",
      sharesEnvironment: true,
    };
  },

  async report(tx, scope, lease, report) {
    requireNoSteps(report);
    const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
    if (!stored || hasStopped(stored.execution)) return { stop: true };
    const after = await reportEnvironmentOfAgent(tx, scope, stored, report.environment);
    if (after !== stored) await resetAttempts(tx, lease.id);
    return { stop: false };
  },

  async end(tx, scope, lease, end) {
    const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
    if (!stored || hasStopped(stored.execution)) {
      await removeWork(tx, lease.id);
      if (stored) await queueAfterUnmade(tx, scope, stored.environmentId);
      return;
    }
    const outcome = end.kind === "finished" ? end.outcome.outcome : Outcome.RELEASED;
    const unmade = await findUnstartedEnvironment(tx, scope, stored);
    const isStopped = outcome === Outcome.STOPPED || isStopRequested(stored.execution);
    if (unmade && !isStopped && outcome !== Outcome.DONE)
      return endWithoutEnvironment(tx, scope, lease, unmade, end);
    if (outcome === Outcome.RELEASED && !isStopped) return endLostLease(tx, scope, lease, stored);
    await removeWork(tx, lease.id);
    const event = outcome === Outcome.DONE ? "end" : "stop";
    const failure = outcome === Outcome.FAILED ? failureOfAgent(failureIn(end)) : undefined;
    await endAgentExecution(tx, scope, stored.execution.id, { event, failure });
    if (unmade) await queueAfterUnmade(tx, scope, stored.environmentId);
  },

  async warn(tx, scope, { subject_id }, { message }) {
    const stored = await findAgentExecution(tx.db, scope, subject_id);
    if (stored) await warnAgentExecution(tx, scope, stored, message);
  },

  async credentialUse(tx, scope, lease) {
    const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
    // An execution that was stopped immediately no longer needs a credential.
    if (!stored || hasStopped(stored.execution)) throw leaseLost();
    const { metadata, spec } = stored.execution;
    const environment = await findEnvironment(tx.db, scope, stored.environmentId);
    const cloneUrl = spec?.codeContext?.pullRequest?.repository?.cloneUrl;
    const action = await findAction(tx.db, scope, environment?.spec?.workflowActionId ?? "");
    const workflowExecution = await findWholeExecution(
      tx.db,
      scope,
      action?.metadata?.workflowExecutionId ?? "",
    );
    const setters = environment ? await findSourceSetters(tx.db, scope, "environment", environment) : [];
    const creator = environment?.metadata?.creator;
    return {
      subject: metadata?.creator ?? create(SubjectSchema),
      addresses: [...addressesOf(environment?.spec?.content?.initializer), ...(cloneUrl ? [cloneUrl] : [])],
      // Programs that the creator has put into an environment run in it together with the agent.
      sourceSetBy: uniqueSubjects(setters, creator ? [creator] : []),
      sourceKinds: workflowExecution
        ? sourceKindsOf(workflowExecution.execution, environment?.metadata?.projectId !== "")
        : ["environment"],
      namedBy: workflowExecution && (await findExecutorAssigner(tx, scope, workflowExecution.execution)),
    };
  },
};

/**
 * Ends a lost lease. Another attempt follows, unless all attempts ended in the middle of a turn or before an input
 * was seen. An agent execution that waits for input and has seen all of it keeps waiting, however often its runner is
 * lost.
 */
async function endLostLease(
  tx: WriteTransaction,
  scope: Scope,
  { id, attempt, fence, stop }: StoredWork,
  stored: StoredAgentExecution,
): Promise<void> {
  const { execution: before, lastSequence } = stored;
  // An execution that was asked for its slot is idle, even if the runner was lost before giving it back.
  if (stop === STOP_GIVE_BACK && (await restAgentExecution(tx, id, stored))) return;
  const after = lostAgentExecution(before);
  if (!after && !(await hasUnseenInput(tx.db, before.id))) {
    await resetAttempts(tx, id);
    return releaseWork(tx, id);
  }
  const inputId = after && (await recordLostTurn(tx, stored, fence));
  if (inputId !== undefined)
    await appendLostTurnError(tx, before.id, { inputId, sequence: lastSequence + 1 });
  if (attempt < MAX_ATTEMPTS) {
    if (after) await updateAgentExecution(tx, scope, before, after);
    return releaseWork(tx, id);
  }
  await removeWork(tx, id);
  const purpose = after ? "" : " to hand the agent an input";
  const message = `the runner was lost, or gave the run back, in each of ${attempt} attempts${purpose}`;
  await endAgentExecution(tx, scope, before.id, {
    event: "stop",
    failure: { reason: Reason.SERVICE, message },
  });
}

/** Appends an error to the output. The input is not delivered again, so people must learn that its answer may be missing. */
async function appendLostTurnError(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  { inputId, sequence }: { readonly inputId: string; readonly sequence: number },
): Promise<void> {
  const message = "the runner was lost in the middle of a turn";
  const block = create(AgentOutputBlockSchema, {
    sequence: BigInt(sequence),
    at: timestampFromMs(tx.now),
    inputId,
    block: { case: "error", value: { message } },
  });
  await appendOutput(tx, executionId, [block]);
}

function beginFailure(
  environment: Environment | undefined,
  agent: RegisteredAgent | undefined,
): AgentFailure {
  if (!environment) return { reason: Reason.ENVIRONMENT, message: "its environment was removed" };
  return agent ? API_AGENT_NOT_ALLOWED : AGENT_UNREGISTERED;
}

function failureIn(end: LeaseEnd): Failure | undefined {
  return end.kind === "finished" ? end.outcome.failure : undefined;
}
