import { describe, expect, test } from "@jest/globals";
import {
  WorkflowExecutionActionPhase as Action,
  WorkflowExecutionPhase as Execution,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
} from "#gen/service/v1/workflow_pb.js";
import {
  ACTION_TRANSITIONS,
  EXECUTION_TRANSITIONS,
  isFinalAction,
  isFinalExecution,
  STEP_TRANSITIONS,
  type Transition,
  transitionAction,
  transitionExecution,
  transitionStep,
} from "./workflow-transitions.ts";

type Table = readonly Transition<number, string>[];
type Names = Readonly<Record<number, string>>;

const TABLES: [name: string, table: Table, names: Names, finals: string[]][] = [
  ["execution", EXECUTION_TRANSITIONS, Execution, ["COMPLETED", "STOPPED"]],
  ["action", ACTION_TRANSITIONS, Action, ["DONE", "STOPPED"]],
  ["step", STEP_TRANSITIONS, Step, ["CANCELLED", "FAILED"]],
];

describe.each(TABLES)("the moves of an %s", (_, table, names, finals) => {
  const phases = new Set(table.flatMap(([from, , to]) => [from, to]));
  const nameOf = (phase: number) => names[phase];

  test("lead from PENDING to every phase there is", () => {
    const reached = new Set(table.filter(([from]) => nameOf(from) === "PENDING").map(([from]) => from));
    for (let size = 0; size < reached.size; ) {
      size = reached.size;
      for (const [from, , to] of table) if (reached.has(from)) reached.add(to);
    }
    expect([...reached].toSorted()).toEqual([...phases].toSorted());
  });

  test("end in the phases that are final, and in no other", () => {
    const left = new Set(table.map(([from]) => from));
    const ends = [...phases].filter((phase) => !left.has(phase)).map(nameOf);
    expect(ends.toSorted()).toEqual(finals);
  });

  test("say of each phase and event at most one thing", () => {
    const keys = table.map(([from, event]) => `${from} ${event}`);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("change the phase", () => {
    expect(table.filter(([from, , to]) => from === to)).toEqual([]);
  });
});

test("a move of a table is made, and any other refused with the phase", () => {
  expect(transitionExecution(Execution.PENDING, "begin")).toBe(Execution.RUNNING);
  expect(transitionAction(Action.RUNNING, "lose")).toBe(Action.PENDING);
  expect(transitionStep(Step.DONE, "lose")).toBe(Step.PENDING);
  expect(() => transitionExecution(Execution.STOPPED, "complete")).toThrow(
    expect.objectContaining({ metadata: { resource: "workflow execution", phase: "STOPPED" } }),
  );
  expect(() => transitionAction(Action.DONE, "begin")).toThrow(
    'the event "begin" is not allowed while the workflow execution action is DONE',
  );
  expect(() => transitionStep(Step.FAILED, "lose")).toThrow(
    'the event "lose" is not allowed while the step is FAILED',
  );
});

test("the final phases are those without a move", () => {
  expect([Action.DONE, Action.STOPPED].every(isFinalAction)).toBe(true);
  expect([Action.PENDING, Action.RUNNING, Action.STOPPING].some(isFinalAction)).toBe(false);
  expect([Execution.COMPLETED, Execution.STOPPED].every(isFinalExecution)).toBe(true);
  expect([Execution.PENDING, Execution.RUNNING, Execution.STOPPING].some(isFinalExecution)).toBe(false);
});
