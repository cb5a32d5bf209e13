import { keepTyped, readTyped } from "../../../api/typed.ts";
import { type Draft, draftFrom, textOf } from "./draft.ts";

/** What a person makes of a workflow and has not saved. */
export interface Unsaved {
  /** What the editor began with. */
  readonly initial: Draft;
  readonly draft: Draft;
  /** What is typed, where the workflow is edited as text; it may be no JSON yet. */
  readonly text?: string | undefined;
}

/** Returns the name under which the tab keeps what is not saved of a workflow. @param workflowId "" for a new one */
const nameOf = (workflowId: string) => `workflow ${workflowId}`;

/** Returns what the tab has kept of a workflow; undefined where there is nothing. */
export function readUnsaved(workflowId: string): Unsaved | undefined {
  const kept = readTyped(nameOf(workflowId));
  if (kept === undefined) return undefined;
  const { initial, draft, text } = JSON.parse(kept) as Record<keyof Unsaved, string | undefined>;
  const [first, last] = [draftFrom(initial ?? ""), draftFrom(draft ?? "")];
  // Another release may have kept it, whose fields this one does not know.
  if ("problem" in first || "problem" in last) return undefined;
  return { initial: first.draft, draft: last.draft, text };
}

/** Keeps in the tab what is not saved of a workflow; what is as it was is not kept. */
export function keepUnsaved(workflowId: string, { initial, draft, text }: Unsaved): void {
  const [before, after] = [textOf(initial), textOf(draft)];
  const isSame = before === (text ?? after);
  keepTyped(nameOf(workflowId), isSame ? "" : JSON.stringify({ initial: before, draft: after, text }));
}

/** Forgets what is not saved of a workflow. */
export const forgetUnsaved = (workflowId: string): boolean => keepTyped(nameOf(workflowId), "");
