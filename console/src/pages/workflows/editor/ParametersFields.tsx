import { create } from "@bufbuild/protobuf";
import { Button, Checkbox } from "@mantine/core";
import { type WorkflowParameter, WorkflowParameterSchema } from "#gen/service/v1/workflow_pb.js";
import { PartBreach, removed, replaced, TextField } from "../../../parts/fields/fields.tsx";
import { AddButton } from "../../../parts/fields/ListButtons.tsx";

/** Maximum parameters of a workflow (contract). */
const MAX_PARAMETERS = 10;

interface ParametersFieldsProps {
  readonly parameters: readonly WorkflowParameter[];
  readonly onChange: (parameters: WorkflowParameter[]) => void;
}

/** Edits the parameters that a workflow declares, each with its default value. */
export function ParametersFields({ parameters, onChange }: ParametersFieldsProps) {
  return (
    <>
      <PartBreach path="parameters" />
      {parameters.map((parameter, at) => {
        const set = (change: Partial<WorkflowParameter>) =>
          onChange(replaced(parameters, at, { ...parameter, ...change }));
        const path = `parameters[${at}]`;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: keys are being typed, and the fields are all controlled
          <fieldset key={at} className="part">
            <legend className="dim small">Parameter {at + 1}</legend>
            <div className="field-row">
              <TextField
                path={`${path}.key`}
                label="Key"
                description={
                  <>
                    Used as <code>{`{{ .Parameters.${parameter.key || "key"} }}`}</code>
                  </>
                }
                value={parameter.key}
                onChange={(key) => set({ key })}
              />
              <TextField
                path={`${path}.description`}
                label="Description"
                description="Shown when someone starts the workflow."
                value={parameter.description}
                onChange={(description) => set({ description })}
              />
            </div>
            <div className="field-row">
              <div className="stack">
                <Checkbox
                  label="It has a default"
                  checked={parameter.defaultValue !== undefined}
                  onChange={({ currentTarget: { checked } }) => {
                    const { defaultValue: _, ...rest } = parameter;
                    onChange(replaced(parameters, at, checked ? { ...rest, defaultValue: "" } : rest));
                  }}
                />
                {parameter.defaultValue !== undefined && (
                  <TextField
                    path={`${path}.default_value`}
                    label="Default"
                    value={parameter.defaultValue}
                    onChange={(defaultValue) => set({ defaultValue })}
                  />
                )}
              </div>
              <TextField
                path={`${path}.payload_field`}
                label="Field of the webhook body, such as issue.title"
                value={parameter.payloadField}
                onChange={(payloadField) => set({ payloadField })}
              />
            </div>
            <div className="row">
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                aria-label={`Remove parameter ${at + 1}`}
                onClick={() => onChange(removed(parameters, at))}
              >
                Remove parameter
              </Button>
            </div>
          </fieldset>
        );
      })}
      <AddButton
        label="Add parameter"
        disabled={parameters.length >= MAX_PARAMETERS}
        onAdd={() => onChange([...parameters, create(WorkflowParameterSchema)])}
      />
    </>
  );
}
