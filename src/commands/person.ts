import { StartError } from "./start-error.ts";

/** Control characters, which would come out of lists as something else than they are. */
const CONTROL = /\p{Cc}/u;

/** The least that every mail address has; whether mail arrives there nobody here knows. */
const ADDRESS = /^[^\s@]+@[^\s@]+$/u;

/** Longest name and address of a person, in characters; addresses end there by RFC 5321. */
const MOST_CHARACTERS = 254;

/**
 * Holds what the operator says of a person against what accounts take.
 *
 * @throws StartError
 */
export function checkPerson(email: string, name: string): void {
  if (!ADDRESS.test(email) || CONTROL.test(email) || [...email].length > MOST_CHARACTERS) {
    throw new StartError(`--email must be a mail address of at most ${MOST_CHARACTERS} characters`);
  }
  if (name.trim() === "" || CONTROL.test(name) || [...name].length > MOST_CHARACTERS) {
    throw new StartError(
      `the person's name must have 1 to ${MOST_CHARACTERS} characters without control characters`,
    );
  }
}
