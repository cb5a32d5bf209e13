import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  WorkflowExecutionPhase as Phase,
  type WorkflowExecution,
  WorkflowExecutionTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import { workflowError } from "./workflow-error.ts";
import {
  begunExecution,
  cancelledExecution,
  completedExecution,
  executionSearchText,
  hasEnded,
  isCancelled,
  newExecution,
  stoppedExecution,
  totalActionCount,
  warnedExecution,
} from "./workflow-execution.ts";

const NOW = Date.UTC(2026, 0, 1);
const subject = create(SubjectSchema, { id: "user", principal: Principal.USER });
const fresh = () =>
  newExecution({
    id: "execution",
    session: "first",
    workflowId: "workflow",
    creator: subject,
    executor: subject,
    trigger: create(WorkflowExecutionTriggerSchema),
    action: undefined,
    report: undefined,
    warnings: [workflowError("parameter_unused", "nothing uses it", { parameter: "branch" })],
    retriedExecutionId: "",
    now: NOW,
  });
const begun = () => begunExecution(fresh()) as WorkflowExecution;
const cancelled = (present: WorkflowExecution, isRunning: boolean) =>
  cancelledExecution(present, { session: "second", isRunning, now: NOW });
const phase = (execution: WorkflowExecution | undefined) => Phase[execution?.status?.phase ?? 0];

describe("an execution", () => {
  test("is pending, wanted completed, and has the warnings of its start", () => {
    const execution = fresh();
    expect(execution).toMatchObject({
      spec: { session: "first", desiredPhase: Phase.COMPLETED },
      status: {
        session: "first",
        phase: Phase.PENDING,
        warningMessage: "nothing uses it",
        warnings: [{ reason: "parameter_unused", meta: { parameter: "branch" } }],
      },
    });
    expect([hasEnded(execution), isCancelled(execution), totalActionCount(execution)]).toEqual([
      false,
      false,
      0,
    ]);
  });

  test("begins once", () => {
    expect(phase(begun())).toBe("RUNNING");
    expect(begunExecution(begun())).toBeUndefined();
  });

  test("completes, and has failed as a whole when that says so", () => {
    const failure = workflowError("repository_search_failed", "git.example.org is away");
    const execution = completedExecution(fresh(), [failure], NOW);
    expect([phase(execution), execution.status?.failureMessage]).toEqual([
      "COMPLETED",
      "git.example.org is away",
    ]);
    expect(execution.metadata?.finishedAt).toBeDefined();
    expect(completedExecution(begun(), [], NOW).status?.failures).toEqual([]);
    expect(hasEnded(execution)).toBe(true);
  });

  test("is stopped at once when no action runs, and after the last one otherwise", () => {
    expect([phase(cancelled(fresh(), false)), phase(cancelled(begun(), false))]).toEqual([
      "STOPPED",
      "STOPPED",
    ]);
    const stopping = cancelled(begun(), true);
    if (!stopping) throw new Error("nothing was cancelled");
    expect(stopping).toMatchObject({
      spec: { session: "second", desiredPhase: Phase.STOPPED },
      status: { session: "second", phase: Phase.STOPPING },
    });
    expect([isCancelled(stopping), hasEnded(stopping)]).toEqual([true, false]);
    const stopped = stoppedExecution(stopping, NOW);
    expect([phase(stopped), stopped.metadata?.finishedAt !== undefined]).toEqual(["STOPPED", true]);
  });

  test("is cancelled once, and not after its end", () => {
    const stopping = cancelled(begun(), true);
    expect(stopping && cancelled(stopping, true)).toBeUndefined();
    expect(cancelled(completedExecution(begun(), [], NOW), false)).toBeUndefined();
    expect(() => completedExecution(stoppedExecution(begun(), NOW), [], NOW)).toThrow("is STOPPED");
  });

  test("gathers warnings", () => {
    const execution = warnedExecution(fresh(), [workflowError("actions_left_out", "3 were left out")]);
    expect(execution.status?.warningMessage).toBe("nothing uses it\n3 were left out");
  });
});

test("executions are found by id and by the name of their workflow, in whatever case", () => {
  expect(executionSearchText("0190C0DE", "Nightly REPORT")).toBe("0190c0de\nnightly report");
});
