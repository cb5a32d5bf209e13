import { isJsonObject } from "../../json-object.ts";

/**
 * The error for a payload that starts nothing; the message names the reason, and is safe to show.
 */
export class UnsupportedPayload extends Error {
  override readonly name = "UnsupportedPayload";
}

/** SHA-1 or SHA-256, the two hashes that git supports. */
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * One place in an untrusted payload. Reading it as a type that it does not have throws
 * UnsupportedPayload with the place and never with the value.
 */
export class PayloadField {
  readonly #value: unknown;
  readonly #path: string;

  constructor(value: unknown, path = "") {
    this.#value = value;
    this.#path = path;
  }

  /** Returns the field at the end of a path of members; absent when one on the way is. */
  at(...names: readonly string[]): PayloadField {
    let field: PayloadField = this;
    for (const name of names) field = field.#member(name);
    return field;
  }

  #member(name: string): PayloadField {
    const path = this.#path === "" ? name : `${this.#path}.${name}`;
    if (this.#isAbsent) return new PayloadField(undefined, path);
    if (!isJsonObject(this.#value)) throw this.#wrong("a JSON object");
    return new PayloadField(this.#value[name], path);
  }

  /** Returns this field, or undefined when the payload has null or nothing here. */
  optional(): PayloadField | undefined {
    return this.#isAbsent ? undefined : this;
  }

  /** Returns the members of an array; none when it is absent. */
  list(): PayloadField[] {
    if (this.#isAbsent) return [];
    if (!Array.isArray(this.#value)) throw this.#wrong("an array");
    return this.#value.map((member, index) => new PayloadField(member, `${this.#path}[${index}]`));
  }

  /** Returns a boolean; false when it is absent. */
  flag(): boolean {
    if (this.#isAbsent) return false;
    if (typeof this.#value !== "boolean") throw this.#wrong("true or false");
    return this.#value;
  }

  /** Returns a whole number above 0, in decimal. */
  id(): string {
    if (!Number.isSafeInteger(this.#value) || Number(this.#value) < 1) {
      throw this.#wrong("a whole number above 0");
    }
    return String(this.#value);
  }

  /**
   * Returns an identifying text: 1 to `maxCharacters`, none of them a control character. A longer
   * one is rejected, because a shortened one would identify something else.
   */
  name(maxCharacters: number): string {
    const value = this.#text();
    if (value === "" || !value.isWellFormed() || /\p{Cc}/u.test(value) || [...value].length > maxCharacters) {
      throw this.#wrong(`1 to ${maxCharacters} printable characters`);
    }
    return value;
  }

  /** Returns a text for people, truncated to `maxCharacters`; control characters become spaces. */
  title(maxCharacters: number): string {
    const value = this.#text()
      .toWellFormed()
      .replace(/\p{Cc}/gu, " ");
    return [...value].slice(0, maxCharacters).join("");
  }

  /** Returns an http or https URL without credentials, in a form that every parser splits alike. */
  webUrl(maxCharacters: number): string {
    const value = this.name(maxCharacters);
    const url = URL.parse(value);
    if (!url || !/^https?:\/\/[^/\s\\][^\s\\]*$/u.test(value) || url.username !== "" || url.password !== "") {
      throw this.#wrong("an http or https URL without credentials");
    }
    return value;
  }

  /** Returns the hash of a commit, in lower-case hexadecimal. */
  commit(): string {
    const value = this.#text();
    if (!COMMIT.test(value)) throw this.#wrong("the hash of a commit");
    return value;
  }

  #text(): string {
    if (typeof this.#value !== "string") throw this.#wrong("a text");
    return this.#value;
  }

  get #isAbsent(): boolean {
    return this.#value === undefined || this.#value === null;
  }

  #wrong(expected: string): UnsupportedPayload {
    return new UnsupportedPayload(`${this.#path === "" ? "the payload" : this.#path} must be ${expected}`);
  }
}

/** Formats a word of the sender for a message: quoted, escaped and truncated. */
export function quoted(word: string): string {
  return JSON.stringify([...word.toWellFormed()].slice(0, 64).join(""));
}
