import { isReadableName } from "../domain/text/deceptive-text.ts";
import { StartError } from "./start-error.ts";

/** The minimum form of an email address; it does not ensure that mail arrives. */
const ADDRESS = /^[^\s@]+@[^\s@]+$/u;

/** Maximum length of a person's name and address, in characters; RFC 5321 limits addresses to this. */
const MAX_CHARACTERS = 254;

/**
 * Checks a person's address and name against the rules for accounts.
 *
 * @throws StartError
 */
export function checkPerson(email: string, name: string): void {
  if (!ADDRESS.test(email) || !isReadableName(email) || [...email].length > MAX_CHARACTERS) {
    throw new StartError(`--email must be a mail address of at most ${MAX_CHARACTERS} characters`);
  }
  if (name.trim() === "" || !isReadableName(name) || [...name].length > MAX_CHARACTERS) {
    throw new StartError(
      `the person's name must have 1 to ${MAX_CHARACTERS} characters without control characters, U+202D, U+202E and tag characters`,
    );
  }
}
