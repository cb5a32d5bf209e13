import { useEffect, useState } from "react";

/** Beginning of the names under which a tab keeps what was typed. */
const PREFIX = "typed ";
/** The id of the user who typed it. */
const OWNER = "typed-by";

/** Returns what the tab keeps under a name; undefined where there is nothing. */
export function readTyped(name: string): string | undefined {
  try {
    return sessionStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps in the tab what a person has typed and not sent; an empty text removes it.
 * @returns false where the tab has no room for it: what it kept before stays
 */
export function keepTyped(name: string, text: string): boolean {
  try {
    if (text === "") sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the names that begin with some text and under which the tab keeps something. */
export function typedNames(beginning: string): string[] {
  try {
    return Object.keys(sessionStorage)
      .filter((name) => name.startsWith(PREFIX + beginning))
      .map((name) => name.slice(PREFIX.length));
  } catch {
    return [];
  }
}

/** Holds a text that the tab keeps, so that a reload or an expired session loses none of it. */
export function useKeptText(name: string) {
  const [text, setText] = useState(() => readTyped(name) ?? "");
  // What is too long for the tab stays in the field.
  useEffect(() => void keepTyped(name, text), [name, text]);
  return [text, setText] as const;
}

/** Forgets all that was typed, when its person signs out. */
export function forgetTyped(): void {
  try {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
    }
  } catch {
    // Without a storage nothing is kept.
  }
}

/** Forgets what somebody else has typed in this tab, or the same person in another organization. */
export function forgetTypedOfOthers(userId: string): void {
  try {
    if (sessionStorage.getItem(OWNER) !== userId) forgetTyped();
    sessionStorage.setItem(OWNER, userId);
  } catch {
    // Without a storage nothing is kept.
  }
}
