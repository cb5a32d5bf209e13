/** Returns a text with all secrets masked, as they are and percent-encoded. Mask before cutting: half a secret is not recognized. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== "")
    .reduce(
      (masked, secret) => masked.replaceAll(secret, "***").replaceAll(encodeURIComponent(secret), "***"),
      text,
    );
}
