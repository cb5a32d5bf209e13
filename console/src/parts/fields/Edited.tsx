import { Button } from "@mantine/core";
import { useState } from "react";

/**
 * Holds a person's draft of a stored value, and whether others have changed the value in the meantime. Their changes
 * appear immediately when nothing is typed, and never silently replace what is typed.
 */
export function useEdited<T>(stored: T, isSame: (one: T, other: T) => boolean = Object.is) {
  const [{ initial, draft }, setState] = useState({ initial: stored, draft: stored });
  const takeOver = (next: T) => setState({ initial: next, draft: next });
  const isEdited = !isSame(initial, draft);
  const isOther = !isSame(initial, stored);
  if (isOther && (!isEdited || isSame(stored, draft))) takeOver(stored);
  return {
    draft,
    setDraft: (next: T) => setState({ initial, draft: next }),
    isEdited,
    /** Discards the draft. */
    takeOver,
    /** Continues after `sent` was saved as `saved`. Keeps what was typed in the meantime. */
    onSaved: (sent: T, saved: T) =>
      setState((now) => ({ initial: saved, draft: isSame(now.draft, sent) ? saved : now.draft })),
    /** True when saving would overwrite somebody else's change. */
    isOther: isOther && isEdited,
  };
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
