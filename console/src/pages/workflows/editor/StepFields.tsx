import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Checkbox } from "@mantine/core";
import { ApprovalDecidersSchema, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { type WorkflowStep, WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import { ChoiceField, LongField, NumberField, TextField } from "./fields.tsx";
import { ReportFields } from "./ReportFields.tsx";

/** The kinds of step. */
export type StepKind = "task" | "agent" | "pullRequest" | "report" | "approval";

/** The kinds of step in words. */
export const STEP_KINDS: readonly (readonly [StepKind, string])[] = [
  ["task", "Run a command"],
  ["agent", "Give an agent a prompt"],
  ["pullRequest", "Open a pull request"],
  ["report", "Put out values"],
  ["approval", "Wait for approval"],
];

/** Returns a step of a kind with nothing filled in. */
export function emptyStep(kind: StepKind): WorkflowStep {
  if (kind === "report") {
    const output = {
      schema: { case: "string" as const, value: {} },
      extraction: { case: "command" as const, value: "" },
    };
    return create(WorkflowStepSchema, { step: { case: "report", value: { outputs: [output] } } });
  }
  return create(WorkflowStepSchema, { step: { case: kind, value: {} } as never });
}

const HOUR_MS = 3_600_000;

interface StepFieldsProps {
  /** The path of the step in the contract. */
  readonly path: string;
  readonly step: WorkflowStep;
  readonly onChange: (step: WorkflowStep) => void;
}

/** The fields of one step, by its kind. */
export function StepFields({ path, step: { step, ...rest }, onChange }: StepFieldsProps) {
  const set = (next: WorkflowStep["step"]) => onChange({ ...rest, step: next });
  switch (step.case) {
    case "task":
      return (
        <LongField
          path={`${path}.task.command`}
          label="Command, run by sh in the working tree"
          placeholder="make test"
          isProgram
          value={step.value.command}
          onChange={(command) => set({ ...step, value: { ...step.value, command } })}
        />
      );
    case "agent":
      return (
        <LongField
          path={`${path}.agent.prompt`}
          label="Prompt"
          value={step.value.prompt}
          onChange={(prompt) => set({ ...step, value: { ...step.value, prompt } })}
        />
      );
    case "pullRequest":
      return (
        <>
          <TextField
            path={`${path}.pull_request.title`}
            label="Title"
            value={step.value.title}
            onChange={(title) => set({ ...step, value: { ...step.value, title } })}
          />
          <TextField
            path={`${path}.pull_request.branch`}
            label="Branch that is pushed"
            value={step.value.branch}
            onChange={(branch) => set({ ...step, value: { ...step.value, branch } })}
          />
          <LongField
            path={`${path}.pull_request.description`}
            label="Description"
            value={step.value.description}
            onChange={(description) => set({ ...step, value: { ...step.value, description } })}
          />
          <Checkbox
            label="As a draft"
            checked={step.value.draft}
            onChange={(event) =>
              set({ ...step, value: { ...step.value, draft: event.currentTarget.checked } })
            }
          />
        </>
      );
    case "report":
      return (
        <ReportFields
          path={`${path}.report.outputs`}
          outputs={step.value.outputs}
          onChange={(outputs) => set({ ...step, value: { ...step.value, outputs } })}
        />
      );
    case "approval": {
      const { message, timeout, deciders = create(ApprovalDecidersSchema) } = step.value;
      const setDeciders = (change: Partial<typeof deciders>) =>
        set({ ...step, value: { ...step.value, deciders: { ...deciders, ...change } } });
      return (
        <>
          <LongField
            path={`${path}.approval.message`}
            label="What is approved"
            value={message}
            onChange={(message) => set({ ...step, value: { ...step.value, message } })}
          />
          <div className="field-row">
            <ChoiceField
              path={`${path}.approval.deciders.who`}
              label="Who decides"
              value={String(deciders.who || Who.STARTER_AND_ADMINISTRATORS)}
              choices={[
                [String(Who.STARTER_AND_ADMINISTRATORS), "Who started it, and administrators"],
                [String(Who.ADMINISTRATORS), "Administrators"],
                ...(deciders.who === Who.USERS
                  ? [[String(Who.USERS), "Users and groups, listed in the text"] as const]
                  : []),
              ]}
              onChange={(who) => setDeciders({ who: Number(who) })}
            />
            <NumberField
              path={`${path}.approval.deciders.required`}
              label="How many must approve"
              value={deciders.required || 1}
              onChange={(required) => setDeciders({ required: required ?? 0 })}
            />
            <NumberField
              path={`${path}.approval.timeout`}
              label="Hours that they have"
              value={timeout ? durationMs(timeout) / HOUR_MS : 24}
              onChange={(hours) =>
                set({ ...step, value: { ...step.value, timeout: durationFromMs((hours ?? 0) * HOUR_MS) } })
              }
            />
          </div>
          <Checkbox
            label="Not whoever started it, nor whom it runs as"
            checked={deciders.excludesStarter}
            onChange={(event) => setDeciders({ excludesStarter: event.currentTarget.checked })}
          />
        </>
      );
    }
    default:
      return null;
  }
}
