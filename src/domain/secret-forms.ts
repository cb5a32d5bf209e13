/** Shortest form that is masked, in bytes. */
const MIN_BYTES = 4;
/** The usual length of lines of base64: longer ones are wrapped. */
const MAX_LINE_BYTES = 76;
const [LF, CR] = [10, 13];
const MAX_BREAK_BYTES = 2;

/**
 * Returns the forms in which a secret is recognized: as it is; each of its lines, without the white
 * space around it; in base64, also as a part of something longer, with either alphabet; as in JSON
 * and as in URLs. None is shorter than 4 bytes.
 */
export function secretForms(value: string): Buffer[] {
  const trimmed = value.trim();
  const lines = value.split(/\r\n|\r|\n/).map((line) => line.trim());
  const texts = [
    value,
    value.replace(/^[\r\n]+|[\r\n]+$/g, ""),
    trimmed,
    ...lines,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    ...[...new Set([value, trimmed])].flatMap(base64Forms),
    // As `echo` ends it.
    Buffer.from(`${trimmed}\n`).toString("base64"),
  ];
  return [...new Set(texts)].map((text) => Buffer.from(text)).filter(({ length }) => length >= MIN_BYTES);
}

/** Returns what base64 makes of a text that begins at any place of what is encoded, but for the characters that mix it with its neighbours. */
function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text);
  if (bytes.length < MIN_BYTES) return [];
  const forms = [bytes.toString("base64")];
  for (const before of [0, 1, 2]) {
    const length = before + bytes.length;
    const whole = 4 * Math.floor(length / 3) + (length % 3);
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const own = encoded.slice(before === 0 ? 0 : before + 1, whole);
    // A line break among the first characters leaves the rest.
    const cuts = own.length <= MAX_LINE_BYTES ? [0] : [0, 1, 2, 3];
    forms.push(...cuts.map((cut) => own.slice(cut)));
  }
  return [...forms, ...forms.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))];
}

/** A match at one place of a text. */
export interface FoundSecret {
  /** The end of the longest form that begins there; the place itself for none. */
  readonly end: number;
  /** True when the text ends within a form that may be longer. */
  readonly isOpen: boolean;
}

/** Finds many forms in a text, by their first bytes. */
export class SecretIndex {
  readonly #forms = new Map<number, Buffer[]>();
  readonly #known = new Set<string>();
  /** 1 for each first byte of a form. */
  readonly #first = new Uint8Array(256);
  /** The beginnings of forms that are shorter than the key. */
  readonly #starts = new Set<number>();

  #longestForm = 0;

  /** The most bytes of a text that one form matches. */
  get longestBytes(): number {
    return (1 + MAX_BREAK_BYTES) * this.#longestForm;
  }

  forms(): IterableIterator<Buffer> {
    return [...this.#forms.values()].flat().values();
  }

  get isEmpty(): boolean {
    return this.#forms.size === 0;
  }

  /** Adds a form of at least 4 bytes. */
  add(form: Buffer): void {
    const key = form.readUInt32BE(0);
    const text = form.toString("latin1");
    if (this.#known.has(text)) return;
    this.#known.add(text);
    this.#longestForm = Math.max(this.#longestForm, form.length);
    const alike = this.#forms.get(key);
    if (alike) alike.push(form);
    else this.#forms.set(key, [form]);
    this.#first[form[0] ?? 0] = 1;
    for (let length = 1; length < MIN_BYTES; length++) this.#starts.add(startKey(form, 0, length));
  }

  /** Returns the next place at which a form may begin, or the length of the text. */
  nextCandidate(text: Buffer, from: number): number {
    if (this.isEmpty) return text.length;
    let at = from;
    while (at < text.length && this.#first[text[at] ?? 0] === 0) at++;
    return at;
  }

  longestAt(text: Buffer, at: number): FoundSecret {
    const left = text.length - at;
    if (left < MIN_BYTES) return { end: at, isOpen: this.#starts.has(startKey(text, at, left)) };
    let end = at;
    let isOpen = false;
    for (const form of this.#forms.get(text.readUInt32BE(at)) ?? []) {
      const found = endOfForm(text, at, form);
      if (found === undefined) isOpen = true;
      else end = Math.max(end, found);
    }
    return { end, isOpen };
  }
}

/**
 * Returns the end of a form in a text, where its line breaks may be others than in the form: base64
 * is wrapped, and terminals and diffs have breaks of their own. The place itself when the form is not
 * there; undefined when the text ends within it.
 */
function endOfForm(text: Buffer, at: number, form: Buffer): number | undefined {
  let place = at;
  // Those that the text may have before the next byte: CR and LF, for one that the form lacks and for each of its own.
  let breaks = MAX_BREAK_BYTES;
  for (let own = 0; own < form.length; ) {
    if (place >= text.length) return undefined;
    const [is, wanted] = [text[place], form[own]];
    if (is === wanted) {
      place++;
      own++;
      breaks = MAX_BREAK_BYTES;
    } else if (own >= MIN_BYTES && isBreak(wanted)) {
      own++;
      breaks += MAX_BREAK_BYTES;
    } else if (own >= MIN_BYTES && isBreak(is) && breaks > 0) {
      place++;
      breaks--;
    } else return at;
  }
  return place;
}

function isBreak(byte: number | undefined): boolean {
  return byte === LF || byte === CR;
}

/** Returns a number for 1 to 3 bytes, another for each. */
function startKey(bytes: Buffer, at: number, length: number): number {
  return bytes.readUIntBE(at, length) + length * 0x1_00_00_00;
}
