import { keepTyped, readTyped } from "../../../api/typed.ts";
import { type Draft, draftFrom, textOf } from "./draft.ts";

/** The unsaved changes of a workflow. */
export interface Unsaved {
  /** The initial state of the editor. */
  readonly initial: Draft;
  readonly draft: Draft;
  /** The typed text when the workflow is edited as text; it may not be valid JSON yet. */
  readonly text?: string | undefined;
}

/** Returns the name under which the tab keeps unsaved changes of a workflow. @param workflowId "" for a new one */
const nameOf = (workflowId: string) => `workflow ${workflowId}`;

/** Returns the unsaved changes that the tab has kept of a workflow; undefined for none. */
export function readUnsaved(workflowId: string): Unsaved | undefined {
  const kept = readTyped(nameOf(workflowId));
  if (kept === undefined) return undefined;
  const { initial, draft, text } = JSON.parse(kept) as Record<keyof Unsaved, string | undefined>;
  const [first, last] = [draftFrom(initial ?? ""), draftFrom(draft ?? "")];
  // Another release may have stored it, with fields that this one does not know.
  if ("problem" in first || "problem" in last) return undefined;
  return { initial: first.draft, draft: last.draft, text };
}

/** Keeps the unsaved changes of a workflow in the tab; an unchanged draft is not kept. */
export function keepUnsaved(workflowId: string, { initial, draft, text }: Unsaved): void {
  const [before, after] = [textOf(initial), textOf(draft)];
  const isSame = before === (text ?? after);
  keepTyped(nameOf(workflowId), isSame ? "" : JSON.stringify({ initial: before, draft: after, text }));
}

/** Forgets the unsaved changes of a workflow. */
export const forgetUnsaved = (workflowId: string): boolean => keepTyped(nameOf(workflowId), "");
