import type { JsonValue } from "@bufbuild/protobuf";
import { SecretIndex, secretForms } from "./secret-forms.ts";

const MASK = Buffer.from("***");

/** Texts that are masked in everything that leaves a process. */
export class Secrets {
  readonly #index = new SecretIndex();

  /**
   * Masks `value` from now on, in each of its forms. One that has fewer than 4 bytes is not
   * masked: it would be found in every other text.
   */
  add(value: string): void {
    for (const form of secretForms(value)) this.#index.add(form);
  }

  /** Returns a whole text with its secrets masked. */
  mask(bytes: Uint8Array): Buffer {
    const stream = this.stream();
    return Buffer.concat([stream.write(bytes), stream.end()]);
  }

  /** Adds everything that other secrets mask at this time. */
  addAll(others: Secrets): void {
    for (const form of others.#index.forms()) this.#index.add(form);
  }

  /** Adds everything that other secrets mask at this time, in lower case, as it appears in names of hosts. */
  addInLowerCase(others: Secrets): void {
    for (const form of others.#index.forms()) this.#index.add(Buffer.from(form.toString().toLowerCase()));
  }

  /**
   * Returns the part of a text from `start` to `end` masked, where a secret that reaches beyond the part is masked,
   * too. Those of which the text has only a piece are not recognized: it must begin and end
   * {@link Secrets.longestBytes} before and after the part, or where the whole text does.
   */
  maskPart(text: Buffer, start: number, end: number): Buffer {
    const pieces: Buffer[] = [];
    let from = start;
    let at = this.#index.nextCandidate(text, 0);
    while (at < end) {
      const { end: secretEnd } = reachOfSecrets(this.#index, text, at, { from: at, isEnd: true });
      if (secretEnd > at && secretEnd > start) {
        pieces.push(text.subarray(from, Math.max(at, from)), MASK);
        from = Math.min(secretEnd, end);
      }
      at = this.#index.nextCandidate(text, Math.max(secretEnd, at + 1));
    }
    pieces.push(text.subarray(from, end));
    return Buffer.concat(pieces);
  }

  /** The most bytes that a secret has in a text, where line breaks may be between all of its bytes. */
  get longestBytes(): number {
    return this.#index.longestBytes;
  }

  maskText(text: string): string {
    return this.#index.isEmpty ? text : this.mask(Buffer.from(text)).toString();
  }

  /** Returns a value with all of its texts masked, including names. */
  maskJson(value: JsonValue): JsonValue {
    if (typeof value === "string") return this.maskText(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.maskJson(each));
    const entries = Object.entries(value).map(([name, each]) => [this.maskText(name), this.maskJson(each)]);
    return Object.fromEntries(entries);
  }

  /** Returns a value with the texts in it masked, but not the names of its fields. */
  maskTexts<T>(value: T): T {
    return this.#maskTexts(value) as T;
  }

  /** Returns a mask for bytes that arrive in pieces, even where a secret is split across them. */
  stream(): SecretMask {
    return new SecretMask(this.#index);
  }

  #maskTexts(value: unknown): unknown {
    if (typeof value === "string") return this.maskText(value.toWellFormed());
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return value.map((each) => this.#maskTexts(each));
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#maskTexts(each)]));
  }
}

/** Returns a text with secrets masked. Mask before cutting: half a secret is not recognized. */
export function maskSecrets(text: string, values: readonly string[]): string {
  const secrets = new Secrets();
  for (const value of values) secrets.add(value);
  return secrets.maskText(text);
}

/** Masks one stream of bytes. The result does not depend on how the stream is split into pieces. */
export class SecretMask {
  readonly #index: SecretIndex;
  /** Bytes that may belong to a secret which is not complete. */
  #pending: Buffer = Buffer.alloc(0);
  /** Number of the first of these that belong to a secret whose mask is written. */
  #reached = 0;

  constructor(index: SecretIndex) {
    this.#index = index;
  }

  /** Returns the masked bytes so far; the end is held back while it may be the start of a secret. */
  write(bytes: Uint8Array): Buffer {
    return this.#mask(Buffer.concat([this.#pending, bytes]), false);
  }

  /** Returns the bytes that were held back, masked: no more input follows. */
  end(): Buffer {
    return this.#mask(this.#pending, true);
  }

  #mask(text: Buffer, isEnd: boolean): Buffer {
    const index = this.#index;
    const masked: Buffer[] = [];
    let from = 0;
    // The mask of those that reach in here is written.
    let reached = this.#reached;
    let at = reached > 0 ? 0 : index.nextCandidate(text, 0);
    this.#reached = 0;
    while (at < text.length) {
      const { end, openAt } = reachOfSecrets(index, text, at, { from: Math.max(at, reached), isEnd });
      if (end > at) {
        if (reached === 0) masked.push(text.subarray(from, at), MASK);
        reached = 0;
        from = openAt ?? end;
      }
      if (openAt !== undefined) {
        // Those that overlap may have no end: what is before the last of them is not held back.
        this.#reached = end > at ? end - openAt : 0;
        at = openAt;
        break;
      }
      at = index.nextCandidate(text, Math.max(end, at + 1));
    }
    masked.push(text.subarray(from, at));
    this.#pending = text.subarray(at);
    return Buffer.concat(masked);
  }
}

/** Extent of the secrets that begin at a position. */
interface Reach {
  /** The end of the last that is complete; the place itself for none. */
  readonly end: number;
  /** Begin of a secret that the text ends within. The end does not count it, nor what follows. */
  readonly openAt: number | undefined;
}

/**
 * Returns how far the secret that begins at a place reaches, with those that overlap it: what one of them leaves over
 * is part of another.
 *
 * @param known where those reach at least that begin at the place or before it, and whether the text ends here for good
 */
function reachOfSecrets(
  index: SecretIndex,
  text: Buffer,
  at: number,
  known: { readonly from: number; readonly isEnd: boolean },
): Reach {
  let end = known.from;
  for (let start = at; start === at || start < end; start++) {
    const found = index.longestAt(text, start);
    if (found.isOpen && !known.isEnd) return { end, openAt: start };
    end = Math.max(end, found.end);
  }
  return { end, openAt: undefined };
}
