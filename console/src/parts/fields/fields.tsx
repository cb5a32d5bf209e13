import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useContext } from "react";
import type { Breaches } from "./rules.ts";

/** What the fields of an editor know about the rules. */
interface Rules {
  readonly breaches: Breaches;
  /** Returns whether a field shows its broken rules: not before somebody has visited it or tried to save. */
  readonly isShown: (path: string) => boolean;
}

export const RulesContext = createContext<Rules>({ breaches: new Map(), isShown: () => false });

/** Returns the message about the rule that a field breaks, once it should be shown. */
export function useBreach(path: string): string | undefined {
  const { breaches, isShown } = useContext(RulesContext);
  return isShown(path) ? breaches.get(path)?.join("; ") : undefined;
}

interface FieldProps {
  /** The path of the field in the contract, which rules refer to. */
  readonly path: string;
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly description?: ReactNode;
  readonly placeholder?: string;
}

/** A single-line text field of the draft. */
export function TextField({ path, label, value, onChange, description, placeholder }: FieldProps) {
  return (
    <TextInput
      name={path}
      label={label}
      description={description}
      placeholder={placeholder}
      value={value}
      error={useBreach(path)}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** A multi-line text field of the draft; code is shown in a monospace font. */
export function LongField({
  path,
  label,
  value,
  onChange,
  description,
  placeholder,
  isProgram = false,
}: FieldProps & { readonly isProgram?: boolean }) {
  return (
    <Textarea
      name={path}
      label={label}
      description={description}
      placeholder={placeholder}
      autosize
      minRows={2}
      maxRows={16}
      spellCheck={!isProgram}
      classNames={isProgram ? { input: "mono" } : {}}
      value={value}
      error={useBreach(path)}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** A number field of the draft. Text that is not a number remains visible and counts as none. */
export function NumberField({
  path,
  label,
  value,
  onChange,
  description,
}: {
  readonly path: string;
  readonly label: string;
  /** Undefined shows an empty field. */
  readonly value: number | undefined;
  readonly onChange: (value: number | undefined) => void;
  readonly description?: ReactNode;
}) {
  return (
    <TextInput
      name={path}
      label={label}
      description={description}
      type="number"
      step="any"
      value={value ?? ""}
      error={useBreach(path)}
      onChange={({ currentTarget: { value, valueAsNumber } }) =>
        onChange(value === "" || Number.isNaN(valueAsNumber) ? undefined : valueAsNumber)
      }
    />
  );
}

/** A select field of the draft. */
export function ChoiceField<V extends string>({
  path,
  label,
  value,
  choices,
  onChange,
}: {
  readonly path: string;
  readonly label: string;
  readonly value: V;
  readonly choices: readonly (readonly [V, string])[];
  readonly onChange: (value: V) => void;
}) {
  return (
    <NativeSelect
      name={path}
      label={label}
      value={value}
      error={useBreach(path)}
      onChange={(event) => onChange(event.currentTarget.value as V)}
      data={choices.map(([value, label]) => ({ value, label }))}
    />
  );
}

/** Shows the rules that a part of the draft breaks as a whole, such as too few elements. */
export function PartBreach({ path }: { readonly path: string }) {
  const breach = useBreach(path);
  return breach ? (
    <p className="breach" role="alert">
      {breach}
    </p>
  ) : null;
}

/** Returns a list with one element replaced; the next two functions remove an element, or move it up. */
export const replaced = <T,>(list: readonly T[], at: number, value: T): T[] =>
  list.map((each, index) => (index === at ? value : each));
export const removed = <T,>(list: readonly T[], at: number): T[] => list.filter((_, index) => index !== at);
export const movedUp = <T,>(list: readonly T[], at: number): T[] => {
  const [before, moved] = [list[at - 1], list[at]];
  if (before === undefined || moved === undefined) return [...list];
  return list.map((each, index) => (index === at - 1 ? moved : index === at ? before : each));
};
