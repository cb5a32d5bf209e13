import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A call on file and the answer to it. */
export interface Example {
  readonly request: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const TIME = "2026-11-26T09:30:00Z";

/** Placeholders for what differs from run to run; `test/e2e/placeholders.ts` writes these. */
const VALUES: readonly (readonly [RegExp, (number: string) => string])[] = [
  [/<id (\d+)>/g, (number) => `0199c2a4-7d10-7a3e-8f00-${number.padStart(12, "0")}`],
  [/<token \d+>/g, () => "the-secret-text"],
  [/<time>/g, () => TIME],
  [/<page token>/g, () => "the-token-of-the-next-page"],
  [/<base url>/g, () => "https://chartroom.example.org"],
  [/<sequence>/g, () => "42"],
  [/<hash>/g, () => "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"],
];

/** Returns the call on file of an operation, with values in the place of its placeholders. */
export function exampleOf(folder: string, operation: string): Example | undefined {
  const file = join(folder, `${operation}.json`);
  return existsSync(file) ? (withValues(JSON.parse(readFileSync(file, "utf8"))) as Example) : undefined;
}

function withValues(value: unknown): unknown {
  if (typeof value === "string") {
    return VALUES.reduce((text, [form, write]) => text.replace(form, (_, number) => write(number)), value);
  }
  if (Array.isArray(value)) return value.map(withValues);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    key,
    inner === "<value>" ? 0 : withValues(inner),
  ]);
  return Object.fromEntries(entries);
}
