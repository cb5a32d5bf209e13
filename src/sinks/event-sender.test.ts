import { createHmac, timingSafeEqual } from "node:crypto";
import { expect, test } from "@jest/globals";
import { newWebhookSecret, verifySignature } from "../domain/workflow/trigger/webhook-signature.ts";
import { signedHeaders } from "./event-sender.ts";

const cryptography = {
  hmacSha256: (key: Uint8Array, bytes: Uint8Array) => createHmac("sha256", key).update(bytes).digest(),
  equalBytes: timingSafeEqual,
};
const [former, current, other] = [1, 2, 3].map((byte) => newWebhookSecret(Buffer.alloc(32, byte))) as [
  string,
  string,
  string,
];
const NOW = Date.UTC(2026, 10, 26);
const body = '{"type":"project.created"}';
const headers = signedHeaders({ id: "delivery", body, secrets: [current, former] }, NOW);

const verdict = (secret: string, sent = body) =>
  verifySignature({ headers, body: Buffer.from(sent) }, [secret], NOW, cryptography);

test("a delivery is verified by either of two secrets, and by no other", () => {
  expect(verdict(current)).toMatchObject({ verified: true, deliveryId: "delivery" });
  expect(verdict(former)).toMatchObject({ verified: true });
  expect(verdict(other)).toEqual({ verified: false, reason: "mismatch" });
});

test("the signature covers the body", () => {
  expect(verdict(current, `${body} `)).toEqual({ verified: false, reason: "mismatch" });
});

test("the headers have the form of the specification's example", () => {
  // The example of the Standard Webhooks specification's reference libraries.
  const signed = signedHeaders(
    {
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      body: '{"test": 2432232314}',
      secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    },
    1_614_265_330_000,
  );
  expect(signed).toEqual({
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  });
});
