import { setTimeout as delay } from "node:timers/promises";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
} from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { createHttpTransport, createWorkClient } from "../../../src/runner/protocol/connection.ts";
import type { Lease } from "../../../src/runner/protocol/lease.ts";
import { poll } from "../../../src/runner/protocol/work-loop.ts";
import { MAX_ATTEMPTS } from "../../../src/services/runner/held-lease.ts";
import type { Answer } from "../../harness/call.ts";
import { registerRunner } from "../../harness/fake-runner.ts";
import { task } from "../../harness/started-execution.ts";
import { bodyOf, type SteadyCalls } from "./steady-client.ts";

const ACTIONS = 6;
const STEPS = [task("one"), task("two")];

/** What a runner did to an action, in the order in which it happened. */
export interface WorkEvent {
  readonly actionId: string;
  readonly attempt: number;
  readonly what: "begun" | "finished" | "lost" | "refused";
}

/** A runner that speaks the protocol as the real one does, and whose steps do nothing. */
export interface SteadyRunner {
  readonly events: readonly WorkEvent[];
  /** Failures that no runner may see. */
  readonly problems: readonly string[];
  stop(): Promise<void>;
}

export async function startSteadyRunner(
  api: { readonly url: string; readonly token: string },
  name: string,
): Promise<SteadyRunner> {
  const { token } = await registerRunner(api, { name });
  const draining = new AbortController();
  const events: WorkEvent[] = [];
  const problems: string[] = [];
  const removeEnvironment = async (lease: Lease): Promise<void> => {
    try {
      await lease.report({ environment: { phase: Phase.DELETING } });
      await lease.finish({ outcome: Outcome.DONE });
    } catch (error) {
      if (!lease.isLost) problems.push(`${name}: ${(error as Error).message}`);
    }
  };
  const execute = async (work: Work, lease: Lease): Promise<void> => {
    if (work.work.case !== "action") return removeEnvironment(lease);
    const { attempt } = work;
    const { actionId } = work.work.value;
    const note = (what: WorkEvent["what"]) => void events.push({ actionId, attempt, what });
    note("begun");
    try {
      await lease.report({ environment: { phase: Phase.RUNNING } });
      for (const stepIndex of STEPS.keys()) {
        await lease.report({ steps: [{ stepIndex, state: State.RUNNING }] });
        await lease.report({ steps: [{ stepIndex, state: State.DONE }] });
      }
      await lease.finish({ outcome: Outcome.DONE });
      note("finished");
    } catch (error) {
      note(lease.isLost ? "lost" : "refused");
      if (!lease.isLost) problems.push(`${name}: ${actionId} ${(error as Error).message}`);
    }
  };
  const polling = poll({
    client: createWorkClient(createHttpTransport(api.url), token),
    instanceId: "",
    kinds: [WorkKind.ACTION, WorkKind.ENVIRONMENT],
    slots: 4,
    execute,
    log: {
      info() {},
      warn() {},
      error: (facts: object) => void problems.push(JSON.stringify(facts)),
    } as never,
    draining: draining.signal,
    graceMs: 30_000,
  });
  polling.catch((error: Error) => problems.push(`${name} ended: ${error.message}`));
  return {
    events,
    problems,
    async stop() {
      draining.abort();
      await polling.catch(() => {});
    },
  };
}

/** Starts one execution after the other until `isOver`, and waits for the end of each. @returns their ids */
export async function executeUntil(isOver: () => boolean, calls: SteadyCalls): Promise<string[]> {
  const call = async (operation: string, body: object) =>
    bodyOf(await calls.call(`WorkflowService/${operation}`, body), operation);
  const repoUrls = Array.from(
    { length: ACTIONS },
    (_, index) => `https://git.example.org/team/r${index}.git`,
  );
  const { workflow } = await call("CreateWorkflow", {
    name: "Steady",
    triggers: [{ manual: {}, context: { repositories: { repositoryUrls: { repoUrls } } } }],
    action: { limits: { maxParallel: ACTIONS, maxTotal: ACTIONS }, steps: STEPS },
  });
  const ids: string[] = [];
  while (!isOver()) {
    const { workflowExecution } = await call("StartWorkflow", { workflowId: workflow.id });
    ids.push(workflowExecution.id);
    await untilEnded(call, workflowExecution.id);
  }
  return ids;
}

async function untilEnded(
  call: (operation: string, body: object) => Promise<Answer["body"]>,
  workflowExecutionId: string,
): Promise<void> {
  for (;;) {
    const { workflowExecution } = await call("GetWorkflowExecution", { workflowExecutionId });
    if (/COMPLETED|STOPPED/.test(workflowExecution.status.phase)) return;
    await delay(200);
  }
}

/** Returns the actions of executions. */
export async function actionsOf(
  calls: SteadyCalls,
  executionIds: readonly string[],
): Promise<Answer["body"][]> {
  const found = await Promise.all(
    executionIds.map(async (id) => {
      const filter = { workflowExecutionIds: [id] };
      const body = bodyOf(
        await calls.call("WorkflowService/ListWorkflowExecutionActions", { filter }),
        "the list of actions",
      );
      return body.workflowExecutionActions;
    }),
  );
  return found.flat();
}

/** Returns the contradictions between what runners did and what is shown of the actions, in words. */
export function actionProblems(actions: readonly Answer["body"][], events: readonly WorkEvent[]): string[] {
  return actions.flatMap(({ id, status }) => {
    const own = events.filter(({ actionId }) => actionId === id);
    const attemptsOf = (what: WorkEvent["what"]) =>
      own.filter((event) => event.what === what).map(({ attempt }) => attempt);
    const begun = attemptsOf("begun");
    const isDone = status.phase.endsWith("_DONE") && status.failures.length === 0;
    // Each of its attempts was lost with a lease that ran out, of which none may have been finished.
    const isExhausted =
      status.failures.length === 1 &&
      status.failures[0].reason === "attempts_exhausted" &&
      status.attempt === MAX_ATTEMPTS &&
      attemptsOf("finished").length === 0;
    const problems = [
      ...(isDone || isExhausted ? [] : [`ended as ${status.phase} ${JSON.stringify(status.failures)}`]),
      ...(new Set(begun).size === begun.length ? [] : [`an attempt was given out twice: ${begun}`]),
      ...(begun.every((attempt) => attempt <= status.attempt)
        ? []
        : [`attempts ${begun}, shown ${status.attempt}`]),
      ...(attemptsOf("finished").length <= 1 ? [] : ["it was finished twice"]),
      ...(attemptsOf("finished").every((attempt) => attempt === status.attempt)
        ? []
        : ["another attempt was finished"]),
    ];
    return problems.map((problem) => `action ${id}: ${problem}`);
  });
}
