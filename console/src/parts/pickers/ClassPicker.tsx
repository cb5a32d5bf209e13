import { FOUND } from "./page-size.ts";
import { type Choice, SearchPicker, useTyped } from "./SearchPicker.tsx";
import { useClasses } from "./use-classes.ts";

/** Searches environment classes by name and id, and adds one. */
export function ClassPicker({
  chosen,
  others = [],
  disabled = false,
  onChoose,
}: {
  /** Ids that are not offered. */
  readonly chosen: readonly string[];
  /** Choices in addition to classes. */
  readonly others?: readonly Choice[];
  readonly disabled?: boolean;
  readonly onChoose: (id: string) => void;
}) {
  const typed = useTyped();
  const classes = useClasses();
  const search = typed.search.trim().toLowerCase();
  const all = [...(classes.data ?? []).map(({ id, displayName }) => ({ id, name: displayName })), ...others];
  const free = all.filter(
    ({ id, name }) => !chosen.includes(id) && `${name}\n${id}`.toLowerCase().includes(search),
  );
  return (
    <SearchPicker
      label="Add a class"
      size="xs"
      typed={typed}
      found={classes.data && free.slice(0, FOUND)}
      hasMore={free.length > FOUND}
      error={classes.error}
      disabled={disabled}
      none={search === "" ? "There is no other class." : "No other class has a matching name."}
      onChoose={({ id }) => onChoose(id)}
    />
  );
}
