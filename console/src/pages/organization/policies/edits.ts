import { keepTyped, readTyped } from "../../../api/typed.ts";
import type { Typed } from "./typed.ts";

/** The changes of the policies that somebody has typed and not saved. */
export interface Edits {
  readonly edits: Typed;
  /** The saved value of each changed field when somebody began to change it. */
  readonly begun: Typed;
}

export const NO_EDITS: Edits = { edits: {}, begun: {} };

/** Name under which the tab keeps the changes until they are saved. */
const NAME = "policies";

/** Returns the changes that the tab has kept, without those that are saved by now. */
export function keptEdits(saved: Typed): Edits {
  const kept = readTyped(NAME);
  if (kept === undefined) return NO_EDITS;
  const { edits, begun } = JSON.parse(kept) as Edits;
  // Another release may have had fields that this one does not know.
  const paths = Object.keys(edits).filter((path) => path in saved && edits[path] !== saved[path]);
  const only = (typed: Typed): Typed => Object.fromEntries(paths.map((path) => [path, typed[path] ?? ""]));
  return { edits: only(edits), begun: only(begun) };
}

/** Keeps the changes in the tab. */
export const keepEdits = ({ edits, begun }: Edits): void => {
  keepTyped(NAME, Object.keys(edits).length === 0 ? "" : JSON.stringify({ edits, begun }));
};
