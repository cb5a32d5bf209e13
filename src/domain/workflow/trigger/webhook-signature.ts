/** The way in which a delivery proves that its sender knows the workflow's webhook secret. */
export type WebhookScheme =
  | "standard-webhooks"
  | "x-hub-signature-256"
  | "x-gitea-signature"
  | "x-forgejo-signature"
  | "x-gitlab-token";

/**
 * HMAC-SHA256 (32 bytes) and a comparison in constant time, passed in by a layer that may use
 * node:crypto.
 */
export interface SignatureCryptography {
  hmacSha256(key: Uint8Array, bytes: Uint8Array): Uint8Array;
  /** Returns false for bytes of different lengths; its duration reveals nothing else. */
  equalBytes(left: Uint8Array, right: Uint8Array): boolean;
}

/** A delivery as it arrived. */
export interface SignedDelivery {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The raw body. */
  readonly body: Uint8Array;
}

/**
 * The reason why a delivery is not verified. `unsigned`: it has no signature of a known scheme.
 * `malformed`: a header does not have its scheme's form. `outside_window`: its timestamp is too old
 * or too far ahead. `mismatch`: it was made with another secret or for another body.
 */
export type SignatureRefusal = "unsigned" | "malformed" | "outside_window" | "mismatch";

export type SignatureVerdict =
  | {
      readonly verified: true;
      readonly scheme: WebhookScheme;
      /** Sender's id of this delivery, the same in each attempt; 1 to 256 characters. */
      readonly deliveryId?: string;
      /**
       * Digest in hex of the body's signature in X-Hub-Signature-256, X-Gitea-Signature or
       * X-Forgejo-Signature, which covers nothing else; it proves nothing.
       */
      readonly bodySignature?: string;
    }
  | { readonly verified: false; readonly reason: SignatureRefusal };

/** Maximum difference of a timestamp from now, in both directions: five minutes. */
const TIMESTAMP_TOLERANCE_MS = 300_000;
const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 32;
const SECRET_FORM = /^whsec_[A-Za-z0-9+/]{43}=$/;
/** X-Hub-Signature-256. */
const HUB_SIGNATURE = /^sha256=([0-9a-fA-F]{64})$/;
/** X-Gitea-Signature and X-Forgejo-Signature, which are the same signature without its name. */
const HEX_SIGNATURE = /^([0-9a-fA-F]{64})$/;
const STANDARD_SIGNATURE = /^v1,([A-Za-z0-9+/]{43}=)$/;
const TIMESTAMP_SECONDS = /^[0-9]{1,12}$/;
const DELIVERY_ID = /^[\x21-\x7e]{1,256}$/;

/**
 * Returns a workflow's webhook secret made of 32 random bytes: `whsec_` and their base64, the form
 * of secrets in Standard Webhooks. Its signatures are keyed with the bytes. The schemes of
 * source-control hosts use the whole text, including the prefix, as the secret or token.
 */
export function newWebhookSecret(random: Uint8Array): string {
  if (random.length !== SECRET_BYTES) throw new Error(`a webhook secret has ${SECRET_BYTES} random bytes`);
  return SECRET_PREFIX + Buffer.from(random).toString("base64");
}

/**
 * Returns whether a delivery comes from a sender who knows one of `secrets` (results of {@link
 * newWebhookSecret}: the current one, and for a day after a rotation the one before). Every scheme
 * that the delivery uses must be valid; with none it is `unsigned`, and without secrets no delivery
 * is verified.
 * @param now milliseconds since 1970 UTC
 */
export function verifySignature(
  delivery: SignedDelivery,
  secrets: readonly string[],
  now: number,
  cryptography: SignatureCryptography,
): SignatureVerdict {
  if (!secrets.every((secret) => SECRET_FORM.test(secret))) {
    throw new Error("a webhook secret has an unknown form");
  }
  let scheme: WebhookScheme | undefined;
  for (const [name, header, refusal] of SCHEMES) {
    const value = delivery.headers[header];
    if (value === undefined) continue;
    const reason = refusal(value, { ...delivery, secrets, now, ...cryptography });
    if (reason !== undefined) return { verified: false, reason };
    scheme ??= name;
  }
  if (scheme === undefined) return { verified: false, reason: "unsigned" };
  const deliveryId = deliveryIdOf(delivery, scheme);
  const bodySignature = BODY_SIGNATURES.map(
    ([header, form]) => form.exec(delivery.headers[header] ?? "")?.[1],
  ).find((hex) => hex !== undefined);
  return {
    verified: true,
    scheme,
    ...(deliveryId !== undefined && { deliveryId }),
    ...(bodySignature !== undefined && { bodySignature: digestOf(bodySignature, cryptography) }),
  };
}

/**
 * Returns a one-way digest, so that the stored data of a delivery cannot be used to send it again.
 */
function digestOf(signatureHex: string, { hmacSha256 }: SignatureCryptography): string {
  const digest = hmacSha256(Buffer.from("X-Hub-Signature-256"), Buffer.from(signatureHex, "hex"));
  return Buffer.from(digest).toString("hex");
}

interface Verification extends SignedDelivery, SignatureCryptography {
  readonly secrets: readonly string[];
  readonly now: number;
}

type Refusal = (header: string, verification: Verification) => SignatureRefusal | undefined;

/** The headers of a signature that covers the body alone; equal signatures in different headers are one. */
const BODY_SIGNATURES: readonly (readonly [header: string, form: RegExp])[] = [
  ["x-hub-signature-256", HUB_SIGNATURE],
  ["x-gitea-signature", HEX_SIGNATURE],
  ["x-forgejo-signature", HEX_SIGNATURE],
];

/** Schemes with the header that indicates each; the first valid one names the delivery. */
const SCHEMES: readonly (readonly [WebhookScheme, string, Refusal])[] = [
  ["standard-webhooks", "webhook-signature", verifyStandardWebhooks],
  [
    "x-hub-signature-256",
    "x-hub-signature-256",
    (header, of) => verifyBodySignature(header, HUB_SIGNATURE, of),
  ],
  ["x-gitea-signature", "x-gitea-signature", (header, of) => verifyBodySignature(header, HEX_SIGNATURE, of)],
  [
    "x-forgejo-signature",
    "x-forgejo-signature",
    (header, of) => verifyBodySignature(header, HEX_SIGNATURE, of),
  ],
  ["x-gitlab-token", "x-gitlab-token", verifyGitLabToken],
];

function verifyStandardWebhooks(header: string, verification: Verification): SignatureRefusal | undefined {
  const { headers, body, secrets, now, hmacSha256, equalBytes } = verification;
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  // A full stop in the id could move the border between id, timestamp and body.
  if (!DELIVERY_ID.test(id) || id.includes(".") || !TIMESTAMP_SECONDS.test(timestamp)) return "malformed";
  // The list may contain signatures of other versions, which are for other receivers.
  const signatures = header.split(" ").flatMap((entry) => {
    const signature = STANDARD_SIGNATURE.exec(entry)?.[1];
    return signature === undefined ? [] : [Buffer.from(signature, "base64")];
  });
  if (signatures.length === 0) return "malformed";
  if (Math.abs(now - Number(timestamp) * 1_000) > TIMESTAMP_TOLERANCE_MS) return "outside_window";
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const macs = secrets.map((secret) =>
    hmacSha256(Buffer.from(secret.slice(SECRET_PREFIX.length), "base64"), content),
  );
  const matches = signatures.some((signature) => macs.some((mac) => equalBytes(mac, signature)));
  return matches ? undefined : "mismatch";
}

function verifyBodySignature(
  header: string,
  form: RegExp,
  { body, secrets, hmacSha256, equalBytes }: Verification,
): SignatureRefusal | undefined {
  const hex = form.exec(header)?.[1];
  if (hex === undefined) return "malformed";
  const signature = Buffer.from(hex, "hex");
  const matches = secrets.some((secret) => equalBytes(hmacSha256(Buffer.from(secret), body), signature));
  return matches ? undefined : "mismatch";
}

function verifyGitLabToken(header: string, verification: Verification): SignatureRefusal | undefined {
  const { secrets, equalBytes } = verification;
  const token = Buffer.from(header);
  return secrets.some((secret) => equalBytes(Buffer.from(secret), token)) ? undefined : "mismatch";
}

/**
 * Returns the sender's id of a delivery without a signature, from any header that names it; 1 to
 * 256 characters.
 */
export function unsignedDeliveryId(headers: SignedDelivery["headers"]): string | undefined {
  const ids = SCHEMES.map(([scheme]) => deliveryIdOf({ headers }, scheme));
  return ids.find((id) => id !== undefined);
}

/**
 * Returns the id of a delivery. X-Gitlab-Event-UUID is not an id of a delivery: GitLab gives it to
 * every event of one request and of a chain of hooks. GitLab versions without Idempotency-Key name
 * each attempt separately, so that a new delivery is never mistaken for a duplicate.
 */
function deliveryIdOf(
  { headers }: Pick<SignedDelivery, "headers">,
  scheme: WebhookScheme,
): string | undefined {
  const id = {
    "standard-webhooks": headers["webhook-id"],
    "x-hub-signature-256": headers["x-github-delivery"],
    "x-gitea-signature": headers["x-gitea-delivery"],
    "x-forgejo-signature": headers["x-forgejo-delivery"],
    "x-gitlab-token": headers["idempotency-key"] ?? headers["x-gitlab-webhook-uuid"],
  }[scheme];
  return id !== undefined && DELIVERY_ID.test(id) ? id : undefined;
}
