import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../error.ts";

/**
 * Characters that make a text read differently from how it is written: the overrides U+202D and
 * U+202E reorder it, and tag characters hide words in it. The marks, embeddings and isolates that
 * right-to-left text needs are not included. A flag such as Scotland's consists of tag characters,
 * and is rejected with them.
 */
const DECEPTIVE = /[\u{202d}\u{202e}\u{e0000}-\u{e007f}]/gu;

/** Returns a JSON text with its deceptive characters escaped, so that people see what is really written. */
export function withEscapes(json: string): string {
  return json.replace(DECEPTIVE, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/** Maximum length of the cleaned text in an error (contract, ERROR_REASON_TEXT_DECEPTIVE). */
const MAX_CLEANED_CHARACTERS = 4_096;

/** Returns a text without the characters that hide or reorder what people read. */
export function withoutDeceptiveText(text: string): string {
  return text.replace(DECEPTIVE, "");
}

/** Returns whether a name has no control or deceptive characters, so that lists show it as it is written. */
export function isReadableName(name: string): boolean {
  return !/\p{Cc}/u.test(name) && withoutDeceptiveText(name) === name;
}

/**
 * Requires that a prompt neither hides nor reorders what people read.
 * @param field its JSON path
 * @throws DomainError TEXT_DECEPTIVE with the cleaned text, which is accepted
 */
export function requireNoDeceptiveText(text: string, field: string): void {
  const cleaned = withoutDeceptiveText(text);
  if (cleaned === text) return;
  throw new DomainError(
    ErrorReason.TEXT_DECEPTIVE,
    `${field} carries characters that hide or reorder what is read: send it without U+202D, U+202E and tag characters, as in the detail`,
    { field, cleaned: [...cleaned].slice(0, MAX_CLEANED_CHARACTERS).join("") },
  );
}
