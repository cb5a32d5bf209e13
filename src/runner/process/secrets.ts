import type { JsonValue } from "@bufbuild/protobuf";

const MASK = Buffer.from("***");

/** The secrets of one piece of work, which are masked in its output. */
export class Secrets {
  readonly #values: Buffer[] = [];

  /** Masks `value` from now on; an empty value is ignored. */
  add(value: string): void {
    const bytes = Buffer.from(value);
    if (bytes.length === 0 || this.#values.some((known) => known.equals(bytes))) return;
    this.#values.push(bytes);
  }

  /** Returns a whole text with its secrets masked. */
  mask(bytes: Uint8Array): Buffer {
    const stream = this.stream();
    return Buffer.concat([stream.write(bytes), stream.end()]);
  }

  maskText(text: string): string {
    return this.#values.length === 0 ? text : this.mask(Buffer.from(text)).toString();
  }

  /** Returns a value with all of its texts masked, including names. */
  maskJson(value: JsonValue): JsonValue {
    if (typeof value === "string") return this.maskText(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.maskJson(each));
    const entries = Object.entries(value).map(([name, each]) => [this.maskText(name), this.maskJson(each)]);
    return Object.fromEntries(entries);
  }

  /** Returns a mask for bytes that arrive in pieces, even where a secret is split across two. */
  stream(): SecretMask {
    return new SecretMask(this.#values);
  }
}

/** Masks one stream of bytes. */
export class SecretMask {
  readonly #secrets: readonly Buffer[];
  /** Bytes that may be the start of a secret. */
  #pending: Buffer = Buffer.alloc(0);

  constructor(secrets: readonly Buffer[]) {
    this.#secrets = secrets;
  }

  /** Returns the masked bytes so far; the end is held back while it may be the start of a secret. */
  write(bytes: Uint8Array): Buffer {
    const text = Buffer.concat([this.#pending, bytes]);
    const masked: Buffer[] = [];
    let from = 0;
    for (;;) {
      const secret = this.#next(text, from);
      if (!secret) break;
      masked.push(text.subarray(from, secret.at), MASK);
      from = secret.end;
    }
    const end = this.#prefixStart(text, from);
    masked.push(text.subarray(from, end));
    this.#pending = text.subarray(end);
    return Buffer.concat(masked);
  }

  /** Returns the bytes that were held back: no more input can complete a secret. */
  end(): Buffer {
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    return rest;
  }

  /** Finds the first complete secret behind `from`. */
  #next(text: Buffer, from: number): { readonly at: number; readonly end: number } | undefined {
    return this.#secrets
      .map((secret) => ({ at: text.indexOf(secret, from), length: secret.length }))
      .filter(({ at }) => at !== -1)
      .map(({ at, length }) => ({ at, end: at + length }))
      .sort((one, other) => one.at - other.at)[0];
  }

  /** Finds the start of a secret's prefix at the end of a text; the length of the text when there is none. */
  #prefixStart(text: Buffer, from: number): number {
    const longest = Math.max(1, ...this.#secrets.map((secret) => secret.length)) - 1;
    for (let at = Math.max(from, text.length - longest); at < text.length; at++) {
      const end = text.subarray(at);
      if (this.#secrets.some((secret) => secret.subarray(0, end.length).equals(end))) return at;
    }
    return text.length;
  }
}
