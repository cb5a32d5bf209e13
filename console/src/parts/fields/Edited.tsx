import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { keepTyped, readTyped } from "../../api/typed.ts";
import { ConfirmButton } from "../ConfirmButton.tsx";

interface EditedOptions<T> {
  readonly isSame: (one: T, other: T) => boolean;
  /** Writes and reads what the tab keeps of a draft. */
  readonly toText: (value: T) => string;
  readonly fromText: (text: string) => T;
}

interface Edited<T> {
  /** The stored value when somebody began to change it. */
  readonly initial: T;
  readonly draft: T;
  /** True when the tab kept the draft from an earlier visit. */
  readonly isRestored: boolean;
}

/**
 * Holds a person's draft of a stored value, and whether others have changed the value in the meantime. Their changes
 * appear immediately when nothing is typed, and never silently replace what is typed. The tab keeps the draft until it
 * is saved or discarded.
 *
 * @param name the name under which the tab keeps it; a component must not change it
 */
export function useEdited<T>(
  name: string,
  stored: T,
  { isSame, toText, fromText }: EditedOptions<T> = {
    isSame: Object.is,
    toText: (value) => JSON.stringify(value),
    fromText: (text) => JSON.parse(text),
  },
) {
  const [{ initial, draft, isRestored }, setState] = useState<Edited<T>>(
    () => restored(name, fromText) ?? { initial: stored, draft: stored, isRestored: false },
  );
  const takeOver = (next: T) => setState({ initial: next, draft: next, isRestored: false });
  const isEdited = !isSame(initial, draft);
  const isOther = !isSame(initial, stored);
  if (isOther && (!isEdited || isSame(stored, draft))) takeOver(stored);
  const kept = isEdited ? JSON.stringify({ initial: toText(initial), draft: toText(draft) }) : "";
  useEffect(() => void keepTyped(name, kept), [name, kept]);
  return {
    draft,
    initial,
    setDraft: (next: T) => setState({ initial, draft: next, isRestored }),
    isEdited,
    /** Discards the draft. */
    takeOver,
    /** Continues after `sent` was saved as `saved`. Keeps what was typed in the meantime. */
    onSaved: (sent: T, saved: T) =>
      setState((now) => ({
        initial: saved,
        draft: isSame(now.draft, sent) ? saved : now.draft,
        isRestored: false,
      })),
    /** True when saving would overwrite somebody else's change. */
    isOther: isOther && isEdited,
    /** True while the draft shows changes from an earlier visit. */
    isRestored: isRestored && isEdited,
  };
}

function restored<T>(name: string, fromText: (text: string) => T): Edited<T> | undefined {
  const kept = readTyped(name);
  if (kept === undefined) return undefined;
  try {
    const { initial, draft } = JSON.parse(kept) as Record<"initial" | "draft", string>;
    return { initial: fromText(initial), draft: fromText(draft), isRestored: true };
  } catch {
    // Another release stored it, with fields that this one does not know.
    return undefined;
  }
}

/** Says that the fields show changes that were not saved at an earlier visit, and offers to discard them. */
export function UnsavedChanges({ onDiscard }: { readonly onDiscard: () => void }) {
  return (
    <div className="bar bar-asks row" role="status">
      You have unsaved changes.
      <ConfirmButton
        label="Discard changes"
        question="Discards your changes and shows what is saved."
        size="compact-xs"
        onConfirm={onDiscard}
      />
    </div>
  );
}

/** Says that somebody else has changed what is being edited, and offers to show it. */
export function ChangedMeanwhile({
  what,
  onShow,
}: {
  /** Such as "the project". */
  readonly what: string;
  readonly onShow?: () => void;
}) {
  return (
    <div className="bar bar-asks row" role="status">
      Someone changed {what} while you were editing. Saving overwrites only the fields that you changed.
      {onShow && (
        <Button variant="default" size="compact-xs" onClick={onShow}>
          Show what is saved
        </Button>
      )}
    </div>
  );
}
