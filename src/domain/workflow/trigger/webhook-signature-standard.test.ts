import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { cryptography, standardSignature } from "../../../../test/harness/webhook-signing.ts";
import { newWebhookSecret, verifySignature } from "./webhook-signature.ts";

const NOW = Date.parse("2026-03-02T08:15:00Z");
const BODY = Buffer.from('{"parameters":{"name":"Grüße"}}\n');
const SECRET = newWebhookSecret(new Uint8Array(32).fill(0x11));
const PREVIOUS = newWebhookSecret(new Uint8Array(32).fill(0x22));
const OTHER = newWebhookSecret(new Uint8Array(32).fill(0x33));

type Headers = Record<string, string | undefined>;

function verdict(headers: Headers, { body = BODY as Uint8Array, secrets = [SECRET], now = NOW } = {}) {
  return verifySignature({ headers, body }, secrets, now, cryptography);
}

const refused = (reason: string) => ({ verified: false, reason });

function standard({
  secret = SECRET,
  id = "msg_2f",
  timestamp = String(NOW / 1_000),
  body = BODY as Uint8Array,
} = {}) {
  return standardSignature(secret, body, { id, timestamp });
}

describe("a delivery signed as Standard Webhooks", () => {
  test("verifies a signature that openssl made", () => {
    // printf 'msg_2f.1772439300.{}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:1111... -binary | base64
    const signature = "v1,cNPYM/dvyZHkD7UTSnLjsVAQvAdHUeL4aLfseX/5TFA=";
    const headers = {
      "webhook-id": "msg_2f",
      "webhook-timestamp": "1772439300",
      "webhook-signature": signature,
    };
    expect(verdict(headers, { body: Buffer.from("{}") })).toEqual({
      verified: true,
      scheme: "standard-webhooks",
      deliveryId: "msg_2f",
    });
  });

  test("takes one good signature among others, and secrets in their overlap", () => {
    const headers = standard({ secret: PREVIOUS });
    const signature = headers["webhook-signature"];
    const wrong = standard({ secret: OTHER })["webhook-signature"];
    const list = `v1a,AAAA ${wrong} v1,short nonsense ${signature}`;
    const mixed = { ...headers, "webhook-signature": list };
    expect(verdict(mixed, { secrets: [SECRET, PREVIOUS] })).toMatchObject({ verified: true });
    expect(verdict(mixed)).toEqual(refused("mismatch"));
  });

  test("keyed with the text of the secret in place of its bytes does not hold", () => {
    const headers = standard();
    const mac = createHmac("sha256", SECRET)
      .update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`)
      .update(BODY)
      .digest("base64");
    expect(verdict({ ...headers, "webhook-signature": `v1,${mac}` })).toEqual(refused("mismatch"));
  });

  test("holds for its id, its timestamp and its body alone", () => {
    const headers = standard();
    expect(verdict({ ...headers, "webhook-id": "msg_2g" })).toEqual(refused("mismatch"));
    expect(verdict({ ...headers, "webhook-timestamp": String(NOW / 1_000 - 1) })).toEqual(
      refused("mismatch"),
    );
    expect(verdict(headers, { body: Buffer.concat([BODY, Buffer.from(" ")]) })).toEqual(refused("mismatch"));
  });

  test.each([
    [-301, refused("outside_window")],
    [-300, { verified: true }],
    [0, { verified: true }],
    [300, { verified: true }],
    [301, refused("outside_window")],
  ])("with a timestamp %i seconds from now", (seconds, expected) => {
    const headers = standard({ timestamp: String(NOW / 1_000 + seconds) });
    expect(verdict(headers)).toMatchObject(expected);
  });

  test("counts the window in milliseconds", () => {
    const headers = standard({ timestamp: String(NOW / 1_000 - 300) });
    expect(verdict(headers, { now: NOW + 1 })).toEqual(refused("outside_window"));
  });

  test.each([
    "",
    "soon",
    "-1772439300",
    "1772439300.0",
    "1.7e9",
    "0x69a54884",
    " 1772439300",
    "1".repeat(13),
  ])("with the timestamp %j is malformed", (timestamp) => {
    expect(verdict(standard({ timestamp }))).toEqual(refused("malformed"));
  });

  test.each(["", "a.b", "msg 2f", "mäg", "m".repeat(257)])("with the id %j is malformed", (id) => {
    expect(verdict(standard({ id }))).toEqual(refused("malformed"));
  });

  test("takes an id of 256 characters", () => {
    expect(verdict(standard({ id: "m".repeat(256) }))).toMatchObject({ verified: true });
  });

  test.each(["webhook-id", "webhook-timestamp"])("without %s is malformed", (name) => {
    expect(verdict({ ...standard(), [name]: undefined })).toEqual(refused("malformed"));
  });

  const signature = standard()["webhook-signature"];
  test.each([
    "",
    " ",
    "v1",
    "v1,",
    signature.slice("v1,".length),
    signature.slice(0, -1),
    `${signature}=`,
    signature.replace("v1,", "V1,"),
    signature.replace("v1,", "v1a,"),
    signature.replace("v1,", "v1:"),
    `${signature},${signature}`,
  ])("with the signature %j is malformed", (header) => {
    expect(verdict({ ...standard(), "webhook-signature": header })).toEqual(refused("malformed"));
  });
});
