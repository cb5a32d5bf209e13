import { Violation } from "@bufbuild/protovalidate";

const NAME = "must be letters, digits and underscores of ASCII, and not begin with a digit";
const DIGEST = "must be 64 lower-case hexadecimal digits";
const EVENT_KINDS = "must be a kind of events, such as project.created, or project.* or * for several";

/** What each pattern of the contract asks for. */
const PATTERNS: ReadonlyMap<string, string> = new Map([
  [
    "^$|^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "must be a valid UUID or empty",
  ],
  ["^[A-Za-z_][A-Za-z0-9_]*$", NAME],
  ["^[a-zA-Z_][a-zA-Z0-9_]*$", NAME],
  ["^[0-9a-zA-Z_]{3,}$", "must be at least 3 letters, digits and underscores of ASCII"],
  ["^[A-Z]{3}$", "must be three capital letters, as in ISO 4217"],
  ["^[0-9a-f]{64}$", DIGEST],
  ["^([0-9a-f]{40}|[0-9a-f]{64})$", "must be 40 or 64 lower-case hexadecimal digits"],
  ["^([0-9a-fA-F]{4,64})?$", "must be 4 to 64 hexadecimal digits or empty"],
  ["^(\\*|[a-z_]+\\.(\\*|[a-z_]+))$", EVENT_KINDS],
  [
    "^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\\.)+[a-zA-Z]{2,}$",
    "must be a domain, such as example.org",
  ],
  ["^$|^[A-Za-z][A-Za-z0-9_+/-]*$", "must be the name of a time zone, such as Europe/Berlin, or empty"],
]);

/** Returns what a pattern of the contract asks for; undefined for one without words. */
export function wordsOfPattern(pattern: string): string | undefined {
  return PATTERNS.get(pattern);
}

const BROKEN_PATTERN = /^does not match regex pattern `(.*)`$/s;

/** Returns a violation in words, where that of a standard rule shows a pattern or the number of an enum's value. */
export function inWords(violation: Violation): Violation {
  const words = wordsFor(violation);
  if (words === undefined) return violation;
  const { ruleId, field, rule, forKey } = violation;
  return new Violation(words, ruleId, field, rule, forKey);
}

function wordsFor({ ruleId, message }: Violation): string | undefined {
  if (ruleId === "string.pattern") return wordsOfPattern(BROKEN_PATTERN.exec(message)?.[1] ?? "");
  return ruleId === "enum.not_in" && message === "must not be in list [0]"
    ? "must not be unspecified"
    : undefined;
}
