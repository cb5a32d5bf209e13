import { useEffect, useState } from "react";

/** Prefix of the storage keys for typed text. */
const PREFIX = "typed ";
/** The id of the user who typed it. */
const OWNER = "typed-by";

/** Returns the text that the tab keeps under a name; undefined when there is none. */
export function readTyped(name: string): string | undefined {
  try {
    return sessionStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps in the tab what a person has typed but not sent; an empty text removes it.
 * @returns false when the tab's storage is full; what it kept before remains
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

/** Returns the names with a prefix that the tab keeps a text under. */
export function typedNames(beginning: string): string[] {
  try {
    return Object.keys(sessionStorage)
      .filter((name) => name.startsWith(PREFIX + beginning))
      .map((name) => name.slice(PREFIX.length));
  } catch {
    return [];
  }
}

/**
 * Holds a text that the tab keeps: a reload or an expired session does not lose it.
 * @param initial the text of a field that nobody has changed; it is not kept
 */
export function useKeptText(name: string, initial = "") {
  const [before] = useState(initial);
  const [text, setText] = useState(() => readTyped(name) ?? before);
  // A text too long for the storage remains in the field.
  useEffect(() => void keepTyped(name, text === before ? "" : text), [name, text, before]);
  return [text, setText] as const;
}

/** Forgets everything that was typed, when the person signs out. */
export function forgetTyped(): void {
  try {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
    }
  } catch {
    // Without storage there is nothing to forget.
  }
}

/** Forgets what was typed in this tab by somebody else, or by the same person in another organization. */
export function forgetTypedOfOthers(userId: string): void {
  try {
    if (sessionStorage.getItem(OWNER) !== userId) forgetTyped();
    sessionStorage.setItem(OWNER, userId);
  } catch {
    // Without storage there is nothing to forget.
  }
}
