import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useContext } from "react";
import type { Breaches } from "./rules.ts";

/** What the fields of an editor know of the rules. */
interface Rules {
  readonly breaches: Breaches;
  /** Whether a field tells what it breaks: not before somebody has been there, or has tried to save. */
  readonly isShown: (path: string) => boolean;
}

export const RulesContext = createContext<Rules>({ breaches: new Map(), isShown: () => false });

/** Returns the sentence of what a field breaks, once it is to be shown. */
export function useBreach(path: string): string | undefined {
  const { breaches, isShown } = useContext(RulesContext);
  return isShown(path) ? breaches.get(path)?.join("; ") : undefined;
}

interface FieldProps {
  /** The path of the field in the contract, by which rules name it. */
  readonly path: string;
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly description?: ReactNode;
  readonly placeholder?: string;
}

/** A line of text of the draft. */
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

/** Several lines of text of the draft; programs are shown in the font for them. */
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

/** A number of the draft; what is no number stays as it is typed and counts as none. */
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

/** A choice of the draft. */
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

/** What a part of the draft breaks as a whole, such as having too few members. */
export function PartBreach({ path }: { readonly path: string }) {
  const breach = useBreach(path);
  return breach ? (
    <p className="breach" role="alert">
      {breach}
    </p>
  ) : null;
}

/** Returns a list with another member at a place, without the one that was there, or with two of them changed over. */
export const replaced = <T,>(list: readonly T[], at: number, value: T): T[] =>
  list.map((each, index) => (index === at ? value : each));
export const removed = <T,>(list: readonly T[], at: number): T[] => list.filter((_, index) => index !== at);
export const movedUp = <T,>(list: readonly T[], at: number): T[] => {
  const [before, moved] = [list[at - 1], list[at]];
  if (before === undefined || moved === undefined) return [...list];
  return list.map((each, index) => (index === at - 1 ? moved : index === at ? before : each));
};
