import { createHmac, timingSafeEqual } from "node:crypto";
import type { SignatureCryptography } from "../../src/domain/workflow/trigger/webhook-signature.ts";

/** Implemented with node:crypto. */
export const cryptography: SignatureCryptography = {
  hmacSha256: (key, bytes) => createHmac("sha256", key).update(bytes).digest(),
  equalBytes: (left, right) => left.length === right.length && timingSafeEqual(left, right),
};

/** Signs as GitHub does: the text of the secret is the key. */
export function hubSignature(secret: string, body: Uint8Array): Record<"x-hub-signature-256", string> {
  return { "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}` };
}

/** Signs as Gitea does, without the header of GitHub that it also sends. */
export function giteaSignature(secret: string, body: Uint8Array): Record<"x-gitea-signature", string> {
  return { "x-gitea-signature": createHmac("sha256", secret).update(body).digest("hex") };
}

/**
 * Signs by Standard Webhooks: the bytes after the prefix of the secret are the key.
 *
 * @param timestamp seconds since 1970 UTC
 */
export function standardSignature(
  secret: string,
  body: Uint8Array,
  { id, timestamp }: { readonly id: string; readonly timestamp: number | string },
): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const mac = createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${mac}` };
}
