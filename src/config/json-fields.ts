import { isJsonObject } from "../domain/json-object.ts";

/** Reads the fields of an object in a JSON file, and collects their problems. */
export class Fields {
  readonly problems: string[] = [];
  readonly #place: string;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(value: unknown, place: string, known: readonly string[]) {
    this.#place = place;
    const isObject = isJsonObject(value);
    this.#values = isObject ? value : {};
    if (!isObject) this.problems.push(`${place || "the file"} must be an object`);
    for (const name of Object.keys(this.#values)) {
      if (!known.includes(name)) this.complain(name, `is not known; there are ${known.join(", ")}`);
    }
  }

  complain(name: string, text: string): void {
    this.problems.push(`${this.#place ? `${this.#place}.` : ""}${name} ${text}`);
  }

  text(name: string, pattern: RegExp, what: string, absent?: string): string {
    const value = this.#values[name] ?? absent;
    if (typeof value === "string" && pattern.test(value)) return value;
    this.complain(name, `must be ${what}`);
    return "";
  }

  flag(name: string, absent: boolean): boolean {
    const value = this.#values[name] ?? absent;
    if (typeof value !== "boolean") this.complain(name, "must be true or false");
    return value === true;
  }

  integer(name: string, least: number, most: number, absent: number): number {
    const value = this.#values[name] ?? absent;
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
    this.complain(name, `must be a whole number from ${least} to ${most}`);
    return absent;
  }

  list(name: string, absent: readonly unknown[] = []): readonly unknown[] {
    const value = this.#values[name] ?? absent;
    if (Array.isArray(value)) return value;
    this.complain(name, "must be a list");
    return absent;
  }
}

/** Reads the URL of an issuer: https, or http on this machine. */
export function readIssuer(fields: Fields): string {
  const text = fields.text(
    "issuer",
    /^https?:\/\/[!-~]{1,500}$/,
    "the issuer's URL, as its discovery names it",
  );
  const url = URL.parse(text);
  const isOnMachine = url && /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/.test(url.hostname);
  if (text && (!url || url.search || url.hash || url.username || url.password))
    fields.complain("issuer", "must be a URL without query, fragment or user");
  else if (url?.protocol === "http:" && !isOnMachine)
    fields.complain("issuer", "must be https: over plain http anybody on the way could sign in as anybody");
  return text;
}
