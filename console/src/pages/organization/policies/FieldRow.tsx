import { Checkbox, NativeSelect, Textarea, TextInput } from "@mantine/core";
import type { PolicyField } from "./fields.ts";

interface FieldRowProps {
  readonly field: PolicyField;
  readonly value: string;
  readonly isChanged: boolean;
  readonly disabled: boolean;
  readonly onChange: (value: string) => void;
}

/** Shows one policy field: its name, where it applies, and its value. */
export function FieldRow({
  field: { path, label, binds, kind },
  value,
  isChanged,
  disabled,
  onChange,
}: FieldRowProps) {
  const id = `policy-${path}`;
  const typed = (event: { readonly currentTarget: { readonly value: string } }) =>
    onChange(event.currentTarget.value);
  const input = { id, value, disabled, onChange: typed, "aria-describedby": `${id}-binds` };
  return (
    <div className="policy" data-changed={isChanged || undefined}>
      <div>
        <label htmlFor={id} className="policy-label">
          {label}
        </label>
        <p className="dim small" id={`${id}-binds`}>
          {binds} <code>{path}</code>
        </p>
      </div>
      {kind.case === "switch" && (
        <Checkbox
          id={id}
          checked={value === "true"}
          disabled={disabled}
          aria-describedby={`${id}-binds`}
          onChange={(event) => onChange(event.currentTarget.checked ? "true" : "")}
        />
      )}
      {kind.case === "count" && <TextInput {...input} type="number" min={0} />}
      {kind.case === "span" && (
        <TextInput {...input} type="number" min={0} step="any" placeholder="no limit" />
      )}
      {kind.case === "text" && <TextInput {...input} maxLength={1024} />}
      {kind.case === "lines" && <Textarea {...input} rows={Math.min(6, value.split("\n").length + 1)} />}
      {kind.case === "choice" && (
        <NativeSelect {...input} data={kind.choices.map(([value, label]) => ({ value, label }))} />
      )}
      {kind.case === "json" && (
        <Textarea
          {...input}
          rows={Math.min(14, value.split("\n").length + 1)}
          placeholder={kind.example === undefined ? "the default" : `the default, or such as ${kind.example}`}
          spellCheck={false}
          classNames={{ input: "mono" }}
        />
      )}
    </div>
  );
}
