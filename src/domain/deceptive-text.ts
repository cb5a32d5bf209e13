import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "./error.ts";

/**
 * What makes a text read otherwise than it is written: the overrides U+202D and
 * U+202E reorder it, tag characters hide words in it. The marks, embeddings and
 * isolates that right-to-left text needs are not among them. A flag such as that
 * of Scotland is made of tag characters, and goes with them.
 */
const DECEPTIVE = /[\u{202d}\u{202e}\u{e0000}-\u{e007f}]/gu;

/** How much of the cleaned text an error carries (contract, ERROR_REASON_TEXT_DECEPTIVE). */
const CLEANED_CHARACTERS = 4_096;

/**
 * Refuses a prompt that hides or reorders what is read.
 *
 * @param field its JSON path
 * @throws DomainError TEXT_DECEPTIVE with the text as it may be sent
 */
export function requireNoDeceptiveText(text: string, field: string): void {
  const cleaned = text.replace(DECEPTIVE, "");
  if (cleaned === text) return;
  throw new DomainError(
    ErrorReason.TEXT_DECEPTIVE,
    `${field} carries characters that hide or reorder what is read: send it without U+202D, U+202E and tag characters, as in the detail`,
    { field, cleaned: [...cleaned].slice(0, CLEANED_CHARACTERS).join("") },
  );
}
