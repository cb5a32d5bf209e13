import { Button, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { Problem } from "../Problem.tsx";

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

/** Something that can be chosen. */
export interface Choice {
  readonly id: string;
  readonly name: string;
}

/** Returns the text typed into a search, and the text at the last pause in typing. */
export function useTyped() {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text, TYPED_MS);
  return { text, setText, search };
}

interface SearchPickerProps {
  readonly label: string;
  /** What the search looks at. */
  readonly placeholder?: string;
  readonly typed: ReturnType<typeof useTyped>;
  /** The results of the search; undefined while it is in flight. */
  readonly found: readonly Choice[] | undefined;
  /** True when the search found more than it offers. */
  readonly hasMore?: boolean;
  /** The error when nothing could be read. */
  readonly error?: unknown;
  readonly size?: "xs" | "sm";
  readonly disabled?: boolean;
  /** The verb on the buttons, such as "Add". */
  readonly verb?: string;
  /** Shown when the search finds nothing. */
  readonly none: string;
  readonly onChoose: (choice: Choice) => void;
}

/** Searches while typing among more entries than a list can show, and offers each result as a button. */
export function SearchPicker({
  label,
  placeholder = "Search by name",
  typed: { text, setText },
  found,
  hasMore = false,
  error,
  size = "sm",
  disabled = false,
  verb = "Add",
  none,
  onChoose,
}: SearchPickerProps) {
  return (
    <div className="stack picker">
      <TextInput
        type="search"
        label={label}
        placeholder={placeholder}
        size={size}
        value={text}
        maxLength={256}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          // Enter must neither choose anything nor submit a surrounding form.
          if (event.key === "Enter") event.preventDefault();
        }}
      />
      <Problem error={error} />
      <div className="row picker-found">
        {found?.map((choice) => (
          <Button
            key={choice.id}
            variant="default"
            size="compact-xs"
            disabled={disabled}
            onClick={() => onChoose(choice)}
          >
            {verb} {choice.name}
          </Button>
        ))}
        <span className="dim small" role="status">
          {hasMore ? "There are more matches. Type more of the name." : found?.length === 0 ? none : ""}
        </span>
      </div>
    </div>
  );
}
