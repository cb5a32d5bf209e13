import { clone, equals } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Step,
  type WorkflowExecutionAction,
  WorkflowExecutionActionSchema,
} from "#gen/service/v1/workflow_pb.js";
import { replay } from "../../../../test/harness/seed.ts";
import {
  done,
  end,
  execution,
  lines,
  lost,
  moved,
  running,
  START,
  steps,
  waiting,
} from "../../../../test/harness/workflow-action.ts";
import { DomainError } from "../../error.ts";
import { countedPhaseOf, phaseOf, withSteps } from "./workflow-action.ts";
import type { ActionEnd } from "./workflow-action-end.ts";
import { cancelledAction, expiredAction, revokedAction } from "./workflow-action-transitions.ts";
import { workflowError } from "./workflow-error.ts";
import type { StepTransition } from "./workflow-step.ts";
import { ACTION_TRANSITIONS, isFinalAction, STEP_TRANSITIONS } from "./workflow-transitions.ts";

/** One event in the life of an action. */
type Happening = (present: WorkflowExecutionAction) => WorkflowExecutionAction | undefined;

const ends: fc.Arbitrary<ActionEnd> = fc.oneof(
  fc.constant<ActionEnd>({ kind: "done" }),
  fc.constant<ActionEnd>({ kind: "stopped" }),
  fc.constant<ActionEnd>({ kind: "failed", error: workflowError("step_failed", "it failed") }),
  fc.boolean().map(lost),
);
const stepMoves: fc.Arbitrary<StepTransition> = fc.record({
  stepIndex: fc.nat({ max: steps.length - 1 }),
  state: fc.constantFrom("running" as const, "done" as const, "failed" as const),
  outputs: fc.constantFrom(lines("7"), lines("-7"), lines("seven"), {}),
});
const happenings: fc.Arbitrary<Happening> = fc.oneof(
  fc.nat({ max: 3 }).map((attempt) => (present: WorkflowExecutionAction) => running(attempt, present)),
  fc
    .array(stepMoves, { minLength: 1, maxLength: 3 })
    .map((transitions) => (present: WorkflowExecutionAction) => moved(present, ...transitions)),
  // In order, so that a sequence gets far enough.
  fc
    .nat({ max: steps.length - 1 })
    .map((index) => (present: WorkflowExecutionAction) => moved(present, ...done(index))),
  ends.map((how) => (present: WorkflowExecutionAction) => end(present, how)),
  fc.constantFrom<Happening>(
    (present) => cancelledAction(present, "cancelled", START),
    (present) => revokedAction(present, "cut off", START),
    expiredAction,
  ),
);

test("an action never leaves its table, nor its steps theirs, whatever happens in whatever order", () => {
  const legalActions = new Set(ACTION_TRANSITIONS.map(([from, , to]) => `${from} ${to}`));
  // Only the outcome of one report is visible: a step may begin and end in it.
  const legalSteps = new Set([
    ...STEP_TRANSITIONS.map(([from, , to]) => `${from} ${to}`),
    `${Step.PENDING} ${Step.DONE}`,
    `${Step.PENDING} ${Step.FAILED}`,
  ]);
  fc.assert(
    fc.property(fc.array(happenings, { maxLength: 30 }), (sequence) => {
      let action = waiting();
      for (const happen of sequence) {
        let after: WorkflowExecutionAction;
        const before = clone(WorkflowExecutionActionSchema, action);
        try {
          after = happen(action) ?? action;
        } catch (error) {
          // An illegal event is rejected, and changes nothing.
          if (!(error instanceof DomainError)) throw error;
          expect(equals(WorkflowExecutionActionSchema, action, before)).toBe(true);
          continue;
        }
        if (phaseOf(after) !== phaseOf(action)) {
          expect(legalActions).toContain(`${phaseOf(action)} ${phaseOf(after)}`);
        }
        if (isFinalAction(phaseOf(action))) {
          expect(phaseOf(after)).toBe(phaseOf(action));
        }
        const stepsBefore = withSteps(action, execution).status?.stepStatuses;
        withSteps(after, execution).status?.stepStatuses.forEach(({ phase }, index) => {
          const from = stepsBefore?.[index]?.phase;
          if (phase !== from) expect(legalSteps).toContain(`${from} ${phase}`);
        });
        holdsTogether(after);
        action = after;
      }
    }),
    replay,
  );
});

/** Asserts the invariants of every action. */
function holdsTogether(action: WorkflowExecutionAction): void {
  const { status, spec, metadata } = action;
  const stepPhases = withSteps(action, execution).status?.stepStatuses.map(({ phase }) => phase) ?? [];
  const isFinal = isFinalAction(phaseOf(action));
  expect(metadata?.finishedAt !== undefined).toBe(isFinal);
  expect(status?.session).toBe(spec?.session);
  expect(status?.failureMessage).toBe(status?.failures.map(({ message }) => message).join("\n"));
  expect(status?.warningMessage).toBe(status?.warnings.map(({ message }) => message).join("\n"));
  if (isFinal) {
    const open: Step[] = [Step.PENDING, Step.RUNNING];
    expect(stepPhases.filter((phase) => open.includes(phase))).toEqual([]);
  }
  if (countedPhaseOf(action) === "done") expect(new Set(stepPhases)).toEqual(new Set([Step.DONE]));
  if (stepPhases.includes(Step.FAILED) && phaseOf(action) === Phase.DONE) {
    expect(countedPhaseOf(action)).toBe("failed");
  }
  if (countedPhaseOf(action) === "stopped") expect(spec?.desiredPhase).toBe(Phase.STOPPED);
  // Steps run one at a time and in order.
  const begun = stepPhases.findIndex((phase) => phase !== Step.DONE);
  if (begun >= 0) expect(stepPhases.slice(begun + 1).some((phase) => phase === Step.DONE)).toBe(false);
  expect(stepPhases.filter((phase) => phase === Step.RUNNING).length).toBeLessThanOrEqual(1);
}
