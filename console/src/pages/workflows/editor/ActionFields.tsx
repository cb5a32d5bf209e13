import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import {
  WorkflowAction_LimitsSchema as LimitsSchema,
  WorkflowAction_Limits_PerExecutionSchema as PerExecutionSchema,
  type WorkflowAction,
} from "#gen/service/v1/workflow_pb.js";
import {
  ChoiceField,
  movedUp,
  NumberField,
  PartBreach,
  removed,
  replaced,
} from "../../../parts/fields/fields.tsx";
import { AddButton, MemberButtons } from "../../../parts/fields/ListButtons.tsx";
import { emptyStep, STEP_KINDS, StepFields } from "./StepFields.tsx";

const MINUTE_MS = 60_000;

/** Maximum steps of an action (contract). */
const MAX_STEPS = 50;

interface ActionFieldsProps {
  /** The path of the action in the contract: action or report. */
  readonly path: string;
  readonly action: WorkflowAction;
  readonly onChange: (action: WorkflowAction) => void;
  /** True for the report, which has no repository and so opens no pull request. */
  readonly isReport?: boolean;
}

/** Edits what is done in each repository: the steps in order, and the limits. */
export function ActionFields({ path, action, onChange, isReport = false }: ActionFieldsProps) {
  const { steps } = action;
  const limits = action.limits ?? create(LimitsSchema);
  const maxTime = limits.perExecution?.maxTime;
  const kinds = STEP_KINDS.filter(([kind]) => !isReport || ["task", "agent", "report"].includes(kind));
  const setLimits = (change: Partial<typeof limits>) =>
    onChange({ ...action, limits: { ...limits, ...change } });
  return (
    <>
      <PartBreach path={`${path}.steps`} />
      {steps.map((step, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: steps have no ids, and their fields are all controlled
        <fieldset key={at} className="part">
          <legend className="dim small">Step {at + 1}</legend>
          <div className="part-head">
            <ChoiceField
              path={`${path}.steps[${at}].step`}
              label="Step type"
              value={step.step.case ?? "task"}
              choices={kinds}
              onChange={(kind) => onChange({ ...action, steps: replaced(steps, at, emptyStep(kind)) })}
            />
            <MemberButtons
              what={`step ${at + 1}`}
              onMoveUp={at > 0 ? () => onChange({ ...action, steps: movedUp(steps, at) }) : undefined}
              onRemove={() => onChange({ ...action, steps: removed(steps, at) })}
            />
          </div>
          <StepFields
            path={`${path}.steps[${at}]`}
            step={step}
            onChange={(next) => onChange({ ...action, steps: replaced(steps, at, next) })}
          />
        </fieldset>
      ))}
      <AddButton
        label="Add step"
        disabled={steps.length >= MAX_STEPS}
        onAdd={() => onChange({ ...action, steps: [...steps, emptyStep("task")] })}
      />
      <PartBreach path={`${path}.limits`} />
      <div className="field-row">
        {!isReport && (
          <>
            <NumberField
              path={`${path}.limits.max_parallel`}
              label="Concurrent actions"
              value={limits.maxParallel}
              onChange={(count) => setLimits({ maxParallel: Math.trunc(count ?? 0) })}
            />
            <NumberField
              path={`${path}.limits.max_total`}
              label="Maximum number of actions"
              value={limits.maxTotal}
              onChange={(count) => setLimits({ maxTotal: Math.trunc(count ?? 0) })}
            />
          </>
        )}
        <NumberField
          path={`${path}.limits.per_execution.max_time`}
          label="Time limit per action in minutes (empty: none)"
          value={maxTime && durationMs(maxTime) > 0 ? durationMs(maxTime) / MINUTE_MS : undefined}
          onChange={(minutes) => {
            const { perExecution: _, ...rest } = limits;
            const perExecution =
              minutes !== undefined &&
              create(PerExecutionSchema, { maxTime: durationFromMs(minutes * MINUTE_MS) });
            onChange({ ...action, limits: perExecution ? { ...rest, perExecution } : rest });
          }}
        />
      </div>
    </>
  );
}
