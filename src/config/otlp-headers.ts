import { readFileSync } from "node:fs";
import { ConfigError } from "./settings.ts";

/** Headers of requests to collectors, such as authorization. Their values are secret and appear in no message. */
export type OtlpHeaders = Readonly<Record<string, string>>;

/** OpenTelemetry's environment variable: comma-separated `name=value` pairs with percent-encoded values. */
const VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS";

const MAX_HEADERS = 16;
const MAX_VALUE = 8_192;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const VALUE = /^[\t\x20-\x7e]+$/;

/** Headers that describe the request itself, and headers that would make it impossible to send. */
const RESERVED = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Reads the headers for collectors from the variable and the file; for the same name the file takes precedence. A line
 * of the file is `name: value`. Empty lines and lines that begin with `#` are ignored.
 *
 * @param file empty for none
 * @throws ConfigError with every problem; it contains no values
 */
export function readOtlpHeaders(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): OtlpHeaders {
  const problems: string[] = [];
  const headers = new Map<string, string>();
  const add = (place: string, name: string, value: string | undefined) => {
    const problem = problemOf(name, value);
    if (problem) problems.push(`${place}: ${problem}`);
    else headers.set(name.toLowerCase(), value ?? "");
  };
  const pairs = (env[VARIABLE] ?? "").split(",").filter((pair) => pair.trim() !== "");
  for (const [index, pair] of pairs.entries()) {
    const [name, value] = parted(pair, "=");
    add(`${VARIABLE}, pair ${index + 1}`, name, decoded(value));
  }
  for (const [index, line] of linesOf(file).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [name, value] = parted(line, ":");
    add(`--otlp-headers-file ${file}, line ${index + 1}`, name, value);
  }
  if (headers.size > MAX_HEADERS) problems.push(`headers for collectors: at most ${MAX_HEADERS}`);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(headers);
}

function linesOf(file: string): string[] {
  if (file === "") return [];
  try {
    return readFileSync(file, "utf8").split(/\r?\n/);
  } catch (error) {
    throw new ConfigError([
      `--otlp-headers-file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    ]);
  }
}

/** Splits a text into name and value at the separator; without a separator the value is undefined. */
function parted(text: string, mark: string): readonly [name: string, value: string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text.trim(), undefined] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function decoded(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** Returns the problem of a header. The name may also be a secret, when a line holds only a value. */
function problemOf(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return "it is no name with a value";
  if (!NAME.test(name)) return "its name is no name of a header";
  if (RESERVED.has(name.toLowerCase())) return `${name.toLowerCase()} is set by the server itself`;
  if (!VALUE.test(value) || value.length > MAX_VALUE)
    return `its value must have 1 to ${MAX_VALUE} printable characters of ASCII`;
  return undefined;
}
