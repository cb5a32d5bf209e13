import { useEffect, useState } from "react";
import { keepTyped, readTyped } from "../../../../api/typed.ts";
import type { PatchPlace } from "../../../../parts/diff/patch-lines.ts";

/** A comment that is being typed and is not yet part of the review. */
export interface TypedComment {
  readonly place: PatchPlace;
  /** The lines as they were when they were chosen. */
  readonly quote: string;
  readonly text: string;
}

/** Returns the comment that the tab keeps under a name; undefined for none. */
export function readTypedComment(name: string): TypedComment | undefined {
  const kept = readTyped(name);
  return kept === undefined ? undefined : (JSON.parse(kept) as TypedComment);
}

/**
 * Holds the comment that is being typed on a file, until it is added or discarded. The tab keeps its text, also
 * across a reload and while another page is shown.
 */
export function useTypedComment(name: string) {
  const [typed, setTyped] = useState(() => readTypedComment(name));
  useEffect(() => {
    keepTyped(name, typed && typed.text !== "" ? JSON.stringify(typed) : "");
  }, [name, typed]);
  return [typed, setTyped] as const;
}
