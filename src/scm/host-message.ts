/** Maximum of a host's own words that is shown, in characters; a response can have megabytes. */
const MOST_CHARACTERS = 500;

/**
 * Returns a host's error message as one line of at most 500 characters without
 * secrets; empty when there is none that can be read.
 *
 * @param text the body of its response
 */
export function hostMessage(text: string, secrets: readonly string[]): string {
  const body = parsed(text);
  const words = ["message", "error", "error_description", "errors"].map((name) => flat(body?.[name], 3));
  // Masked before it is cut: half a secret would not be recognised any more.
  const masked = secrets.reduce(masking, words.filter(Boolean).join(": "));
  const line = masked.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  return [...line].slice(0, MOST_CHARACTERS).join("");
}

function masking(text: string, secret: string): string {
  if (secret === "") return text;
  return text.replaceAll(secret, "***").replaceAll(encodeURIComponent(secret), "***");
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Joins the texts of a value, which hosts nest as they like: `{"base": ["is
 * invalid"]}` becomes `base is invalid`.
 */
function flat(value: unknown, depth: number): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || depth === 0) return "";
  if (Array.isArray(value)) return value.flatMap((each) => flat(each, depth - 1) || []).join(", ");
  const { message, ...rest } = value as Record<string, unknown>;
  if (typeof message === "string") return message;
  return Object.entries(rest)
    .map(([name, each]) => `${name} ${flat(each, depth - 1)}`.trim())
    .join(", ");
}
