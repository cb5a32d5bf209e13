import type { JsonValue } from "@bufbuild/protobuf";

const MASK = Buffer.from("***");

/** The secrets of one piece of work, which must not be read in what it prints. */
export class Secrets {
  readonly #values: Buffer[] = [];

  /** Masks `value` from now on; an empty one is none. */
  add(value: string): void {
    const bytes = Buffer.from(value);
    if (bytes.length === 0 || this.#values.some((known) => known.equals(bytes))) return;
    this.#values.push(bytes);
  }

  /** All of a text, masked. */
  mask(bytes: Uint8Array): Buffer {
    const stream = this.stream();
    return Buffer.concat([stream.write(bytes), stream.end()]);
  }

  maskText(text: string): string {
    return this.#values.length === 0 ? text : this.mask(Buffer.from(text)).toString();
  }

  /** A value with all of its texts masked, names among them. */
  maskJson(value: JsonValue): JsonValue {
    if (typeof value === "string") return this.maskText(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.maskJson(each));
    const entries = Object.entries(value).map(([name, each]) => [this.maskText(name), this.maskJson(each)]);
    return Object.fromEntries(entries);
  }

  /** Masks bytes that come in pieces, wherever a secret is cut in two. */
  stream(): SecretMask {
    return new SecretMask(this.#values);
  }
}

/** Masks one stream of bytes. */
export class SecretMask {
  readonly #secrets: readonly Buffer[];
  /** What may be the beginning of a secret. */
  #held: Buffer = Buffer.alloc(0);

  constructor(secrets: readonly Buffer[]) {
    this.#secrets = secrets;
  }

  /** What can be told by now; the end is held back while it may be the beginning of a secret. */
  write(bytes: Uint8Array): Buffer {
    const text = Buffer.concat([this.#held, bytes]);
    const told: Buffer[] = [];
    let from = 0;
    for (;;) {
      const secret = this.#next(text, from);
      if (!secret) break;
      told.push(text.subarray(from, secret.at), MASK);
      from = secret.end;
    }
    const end = this.#beginningAt(text, from);
    told.push(text.subarray(from, end));
    this.#held = text.subarray(end);
    return Buffer.concat(told);
  }

  /** What was held back: nothing follows that could make a secret of it. */
  end(): Buffer {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** The first secret behind `from` that is whole. */
  #next(text: Buffer, from: number): { readonly at: number; readonly end: number } | undefined {
    return this.#secrets
      .map((secret) => ({ at: text.indexOf(secret, from), length: secret.length }))
      .filter(({ at }) => at !== -1)
      .map(({ at, length }) => ({ at, end: at + length }))
      .sort((one, other) => one.at - other.at)[0];
  }

  /** Where the end of a text begins that a secret begins with; the length of the text when none does. */
  #beginningAt(text: Buffer, from: number): number {
    const longest = Math.max(1, ...this.#secrets.map((secret) => secret.length)) - 1;
    for (let at = Math.max(from, text.length - longest); at < text.length; at++) {
      const end = text.subarray(at);
      if (this.#secrets.some((secret) => secret.subarray(0, end.length).equals(end))) return at;
    }
    return text.length;
  }
}
