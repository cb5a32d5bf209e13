/** Returns the HMAC-SHA256 of bytes, 32 bytes. */
export type HmacSha256 = (key: Uint8Array, bytes: Uint8Array) => Uint8Array;

const SECRET_PREFIX = "whsec_";

/** What the headers of a delivery are made of. */
export interface DeliveryToSign {
  /** The same for each attempt; without a full stop. */
  readonly id: string;
  readonly body: string;
  /** `whsec_` and the key in base64; each makes a signature. */
  readonly secrets: readonly string[];
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns the headers by which Standard Webhooks lets a receiver verify a delivery. */
export function signedHeaders(
  { id, body, secrets, now }: DeliveryToSign,
  hmacSha256: HmacSha256,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const content = Buffer.from(`${id}.${timestamp}.${body}`);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    return `v1,${Buffer.from(hmacSha256(key, content)).toString("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
