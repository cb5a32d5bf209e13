import { TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { Icon } from "./Icon.tsx";

interface SearchFieldProps {
  readonly label: string;
  readonly placeholder: string;
  readonly className?: string;
  /** The text in the address. */
  readonly value: string;
  /** Called with each change, to put it into the address; undefined for no text. */
  readonly onType: (text: string | undefined) => void;
}

/**
 * A search field whose text is in the address. The field keeps the typed text itself, because the address lags
 * behind: waiting for it would lose letters and the caret's position.
 */
export function SearchField({ label, value, onType, ...field }: SearchFieldProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  useEffect(() => {
    if (document.activeElement !== input.current) setText(value);
  }, [value]);
  return (
    <TextInput
      {...field}
      ref={input}
      type="search"
      aria-label={label}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      maxLength={256}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        onType(currentTarget.value || undefined);
      }}
    />
  );
}
