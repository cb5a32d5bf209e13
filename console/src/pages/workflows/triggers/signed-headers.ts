/** Prefix of a secret, before the base64 of its bytes. */
const PREFIX = "whsec_";

const base64 = (bytes: ArrayBuffer): string => btoa(String.fromCharCode(...new Uint8Array(bytes)));

/**
 * Signs a delivery according to Standard Webhooks: HMAC-SHA256 over id, time and body.
 *
 * @throws Error when the browser cannot sign, which needs https or a server on this machine
 */
export async function signedHeaders(secret: string, body: string): Promise<Record<string, string>> {
  if (!globalThis.isSecureContext) {
    throw new Error("a browser signs only on pages that it got by https, or from this machine");
  }
  const bytes = Uint8Array.from(atob(secret.slice(PREFIX.length)), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const id = crypto.randomUUID();
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = await crypto.subtle.sign(
    "HMAC",
    key,
    new TextEncoder().encode(`${id}.${timestamp}.${body}`),
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${base64(signature)}`,
  };
}
