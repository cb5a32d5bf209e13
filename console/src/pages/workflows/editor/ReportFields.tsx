import { create } from "@bufbuild/protobuf";
import { Button } from "@mantine/core";
import {
  type WorkflowStep_Report_OutputSpec as OutputSpec,
  WorkflowStep_Report_OutputSpecSchema as OutputSpecSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  ChoiceField,
  LongField,
  NumberField,
  PartBreach,
  removed,
  replaced,
  TextField,
} from "../../../parts/fields/fields.tsx";
import { AddButton } from "../../../parts/fields/ListButtons.tsx";

type SchemaCase = "string" | "integer" | "float" | "boolean";

const SCHEMAS: readonly (readonly [SchemaCase, string])[] = [
  ["string", "Text"],
  ["integer", "Whole number"],
  ["float", "Number"],
  ["boolean", "True or false"],
];

const SOURCES = [
  ["command", "What a command prints"],
  ["prompt", "What an agent answers"],
] as const;

/** Returns an empty output. */
const emptyOutput = (schema: SchemaCase = "string"): OutputSpec =>
  create(OutputSpecSchema, {
    schema: { case: schema, value: {} } as never,
    extraction: { case: "command", value: "" },
  });

interface ReportFieldsProps {
  readonly path: string;
  readonly outputs: readonly OutputSpec[];
  readonly onChange: (outputs: OutputSpec[]) => void;
}

/** Edits the outputs of a report step: their names, types, and sources. */
export function ReportFields({ path, outputs, onChange }: ReportFieldsProps) {
  return (
    <>
      <PartBreach path={path} />
      {outputs.map((output, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: outputs have no ids, and their fields are all controlled
        <fieldset key={at} className="part">
          <legend className="dim small">Output {at + 1}</legend>
          <OutputFields
            path={`${path}[${at}]`}
            output={output}
            onChange={(next) => onChange(replaced(outputs, at, next))}
          />
          <div className="row">
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              onClick={() => onChange(removed(outputs, at))}
            >
              Remove output
            </Button>
          </div>
        </fieldset>
      ))}
      <AddButton
        label="Add output"
        disabled={outputs.length >= 10}
        onAdd={() => onChange([...outputs, emptyOutput()])}
      />
    </>
  );
}

function OutputFields({
  path,
  output,
  onChange,
}: {
  readonly path: string;
  readonly output: OutputSpec;
  readonly onChange: (output: OutputSpec) => void;
}) {
  const { schema, extraction } = output;
  return (
    <>
      <div className="field-row">
        <TextField
          path={`${path}.title`}
          label="Title"
          value={output.title}
          onChange={(title) => onChange({ ...output, title })}
        />
        <TextField
          path={`${path}.key`}
          label="Key, such as lines_of_code"
          value={output.key}
          onChange={(key) => onChange({ ...output, key })}
        />
        <ChoiceField
          path={`${path}.schema`}
          label="Type"
          value={schema.case ?? "string"}
          choices={SCHEMAS}
          onChange={(kind) => onChange({ ...output, schema: emptyOutput(kind).schema })}
        />
      </div>
      <div className="field-row">
        {schema.case === "string" && (
          <TextField
            path={`${path}.string.pattern`}
            label="Pattern that the text must match (RE2)"
            value={schema.value.pattern}
            onChange={(pattern) =>
              onChange({ ...output, schema: { ...schema, value: { ...schema.value, pattern } } })
            }
          />
        )}
        {(schema.case === "integer" || schema.case === "float") && (
          <>
            <NumberField
              path={`${path}.${schema.case}.min`}
              label="Minimum"
              value={schema.value.min}
              onChange={(min) => onChange({ ...output, schema: bounded(schema, { min }) })}
            />
            <NumberField
              path={`${path}.${schema.case}.max`}
              label="Maximum"
              value={schema.value.max}
              onChange={(max) => onChange({ ...output, schema: bounded(schema, { max }) })}
            />
          </>
        )}
        <TextField
          path={`${path}.acceptance_criteria`}
          label="Acceptance criterion (CEL)"
          placeholder="this >= 0"
          value={output.acceptanceCriteria ?? ""}
          onChange={(text) => {
            const { acceptanceCriteria: _, ...rest } = output;
            onChange(text === "" ? rest : { ...rest, acceptanceCriteria: text });
          }}
        />
      </div>
      <ChoiceField
        path={`${path}.extraction`}
        label="Source of the value"
        value={extraction.case ?? "command"}
        choices={SOURCES}
        onChange={(kind) =>
          onChange({ ...output, extraction: { case: kind, value: extraction.value ?? "" } })
        }
      />
      <LongField
        path={`${path}.${extraction.case ?? "command"}`}
        label={extraction.case === "prompt" ? "Prompt" : "Command"}
        isProgram={extraction.case !== "prompt"}
        value={extraction.value ?? ""}
        onChange={(value) =>
          onChange({ ...output, extraction: { case: extraction.case ?? "command", value } })
        }
      />
    </>
  );
}

type Bounds = Extract<OutputSpec["schema"], { readonly case: "integer" | "float" }>;

/** Returns a numeric type with a bound set, or removed when undefined. */
function bounded(
  schema: Bounds,
  change: { readonly min?: number | undefined; readonly max?: number | undefined },
): OutputSpec["schema"] {
  const value = { ...schema.value, ...change };
  if (value.min === undefined) delete value.min;
  if (value.max === undefined) delete value.max;
  // An integer has no fraction, although one may be typed.
  if (schema.case === "integer") {
    if (value.min !== undefined) value.min = Math.trunc(value.min);
    if (value.max !== undefined) value.max = Math.trunc(value.max);
  }
  return { ...schema, value } as OutputSpec["schema"];
}
