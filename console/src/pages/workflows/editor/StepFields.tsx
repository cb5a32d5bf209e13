import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Checkbox } from "@mantine/core";
import { ApprovalDecidersSchema } from "#gen/service/v1/approval_pb.js";
import { type WorkflowStep, WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import { LongField, NumberField, TextField } from "../../../parts/fields/fields.tsx";
import { DeciderFields } from "./DeciderFields.tsx";
import { ReportFields } from "./ReportFields.tsx";

/** The kinds of step. */
export type StepKind = "task" | "agent" | "pullRequest" | "report" | "approval";

/** The kinds of step with their labels. */
export const STEP_KINDS: readonly (readonly [StepKind, string])[] = [
  ["task", "Run a command"],
  ["agent", "Give an agent a prompt"],
  ["pullRequest", "Open a pull request"],
  ["report", "Report outputs"],
  ["approval", "Wait for approval"],
];

/** Returns an empty step of a kind. */
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

/** Edits the fields of one step, by its kind. */
export function StepFields({ path, step: { step, ...rest }, onChange }: StepFieldsProps) {
  const set = (next: WorkflowStep["step"]) => onChange({ ...rest, step: next });
  switch (step.case) {
    case "task":
      return (
        <LongField
          path={`${path}.task.command`}
          label="Command (run by sh in the working tree)"
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
            label="Branch to push"
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
      return (
        <>
          <LongField
            path={`${path}.approval.message`}
            label="Message to the approvers"
            value={message}
            onChange={(message) => set({ ...step, value: { ...step.value, message } })}
          />
          <DeciderFields
            path={`${path}.approval.deciders`}
            deciders={deciders}
            onChange={(deciders) => set({ ...step, value: { ...step.value, deciders } })}
          />
          <NumberField
            path={`${path}.approval.timeout`}
            label="Time limit in hours"
            value={timeout ? durationMs(timeout) / HOUR_MS : 24}
            onChange={(hours) =>
              set({ ...step, value: { ...step.value, timeout: durationFromMs((hours ?? 0) * HOUR_MS) } })
            }
          />
        </>
      );
    }
    default:
      return null;
  }
}
