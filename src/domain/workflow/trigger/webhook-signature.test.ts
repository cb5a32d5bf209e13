import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../../test/harness/seed.ts";
import {
  cryptography,
  giteaSignature,
  hubSignature,
  standardSignature,
} from "../../../../test/harness/webhook-signing.ts";
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

const hub = (secret = SECRET, body: Uint8Array = BODY) => hubSignature(secret, body);

function standard({
  secret = SECRET,
  id = "msg_2f",
  timestamp = String(NOW / 1_000),
  body = BODY as Uint8Array,
} = {}) {
  return standardSignature(secret, body, { id, timestamp });
}

test("a secret is whsec_ and the base64 of 32 bytes, no more and no less", () => {
  expect(SECRET).toBe("whsec_ERERERERERERERERERERERERERERERERERERERERERE=");
  for (const bytes of [0, 31, 33])
    expect(() => newWebhookSecret(new Uint8Array(bytes))).toThrow("32 random bytes");
});

test("a stored secret of another form is a fault of the server, not of the sender", () => {
  for (const secret of ["", "whsec_", SECRET.slice(0, -1), ` ${SECRET}`, SECRET.replace("whsec_", "")]) {
    expect(() => verdict(hub(), { secrets: [SECRET, secret] })).toThrow("an unknown form");
  }
});

test("a delivery without a signature is unsigned, and a SHA-1 signature is none", () => {
  expect(verdict({})).toEqual(refused("unsigned"));
  expect(verdict({ "x-hub-signature": "sha1=00", "x-github-delivery": "d1" })).toEqual(refused("unsigned"));
  expect(verdict({ "webhook-id": "m", "webhook-timestamp": "1" })).toEqual(refused("unsigned"));
});

describe("X-Hub-Signature-256", () => {
  test("verifies a signature that openssl made", () => {
    // printf 'Hello, World!' | openssl dgst -sha256 -hmac "$SECRET"
    const known = "sha256=66f055bfff3bd515b7796d8481f2c1627a0aa1cd50d8e470b79eaab6645a6517";
    const body = Buffer.from("Hello, World!");
    expect(hub(SECRET, body)["x-hub-signature-256"]).toBe(known);
    expect(verdict({ "x-hub-signature-256": known }, { body })).toEqual({
      verified: true,
      scheme: "x-hub-signature-256",
      bodySignature: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test("in capitals is the same signature", () => {
    const hex = hub()["x-hub-signature-256"]?.slice("sha256=".length).toUpperCase();
    expect(verdict({ "x-hub-signature-256": `sha256=${hex}` })).toMatchObject({ verified: true });
  });

  test("by the secret before, while it is still given, and by none that is not", () => {
    expect(verdict(hub(PREVIOUS), { secrets: [SECRET, PREVIOUS] })).toMatchObject({ verified: true });
    expect(verdict(hub(PREVIOUS))).toEqual(refused("mismatch"));
    expect(verdict(hub(), { secrets: [] })).toEqual(refused("mismatch"));
  });

  test("keyed with the bytes of the secret in place of its text does not hold", () => {
    const hex = createHmac("sha256", Buffer.alloc(32, 0x11)).update(BODY).digest("hex");
    expect(verdict({ "x-hub-signature-256": `sha256=${hex}` })).toEqual(refused("mismatch"));
  });

  test("of an empty body", () => {
    expect(verdict(hub(SECRET, Buffer.alloc(0)), { body: Buffer.alloc(0) })).toMatchObject({
      verified: true,
    });
  });

  const hex = hub()["x-hub-signature-256"]?.slice("sha256=".length) ?? "";
  test.each([
    "",
    hex,
    `sha1=${hex}`,
    `SHA256=${hex}`,
    `sha256=${hex.slice(1)}`,
    `sha256=${hex}0`,
    `sha256=${hex.slice(2)}zz`,
    ` sha256=${hex}`,
    `sha256= ${hex}`,
    `sha256=${hex}\n`,
    `sha256=${hex}, sha256=${hex}`,
  ])("as %j is malformed", (header) => {
    expect(verdict({ "x-hub-signature-256": header })).toEqual(refused("malformed"));
  });
});

describe.each(["x-gitea-signature", "x-forgejo-signature"] as const)("%s", (name) => {
  const hex = giteaSignature(SECRET, BODY)["x-gitea-signature"];

  test("is the signature of GitHub without its name, and the same key of a repetition", () => {
    const verified = verdict({ [name]: hex });
    expect(verified).toEqual({
      verified: true,
      scheme: name,
      bodySignature: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect((verdict(hub()) as { bodySignature: string }).bodySignature).toBe(
      (verified as { bodySignature: string }).bodySignature,
    );
  });

  test("holds together with that of GitHub, or not at all", () => {
    const id = { "x-github-delivery": "d1" };
    expect(verdict({ ...id, ...hub(), [name]: hex })).toMatchObject({ verified: true, deliveryId: "d1" });
    const other = giteaSignature(OTHER, BODY)["x-gitea-signature"];
    expect(verdict({ ...id, ...hub(), [name]: other })).toEqual(refused("mismatch"));
    expect(verdict({ [name]: hex, ...hub(OTHER) })).toEqual(refused("mismatch"));
  });

  test("names its delivery by its own header", () => {
    const id = name.replace("signature", "delivery");
    expect(verdict({ [name]: hex, [id]: "d2", "x-github-delivery": "d1" })).toMatchObject({
      deliveryId: "d2",
    });
  });

  test("of another body does not match", () => {
    expect(verdict({ [name]: hex }, { body: Buffer.from("{}") })).toEqual(refused("mismatch"));
  });

  test.each(["", `sha256=${hex}`, hex.slice(1), `${hex}0`, ` ${hex}`, `${hex}, ${hex}`])(
    "as %j is malformed",
    (header) => {
      expect(verdict({ [name]: header })).toEqual(refused("malformed"));
    },
  );
});

describe("X-Gitlab-Token", () => {
  test("is the text of the secret, or of the one before", () => {
    expect(verdict({ "x-gitlab-token": SECRET })).toEqual({ verified: true, scheme: "x-gitlab-token" });
    expect(verdict({ "x-gitlab-token": PREVIOUS }, { secrets: [SECRET, PREVIOUS] })).toMatchObject({
      verified: true,
    });
  });

  test.each([
    ["empty", ""],
    ["another secret", OTHER],
    ["without its prefix", SECRET.slice("whsec_".length)],
    ["cut", SECRET.slice(0, -1)],
    ["longer", `${SECRET} `],
    ["in other letters", SECRET.toLowerCase()],
  ])("%s does not match", (_, token) => {
    expect(verdict({ "x-gitlab-token": token })).toEqual(refused("mismatch"));
  });
});

describe("several schemes at once", () => {
  const token = { "x-gitlab-token": SECRET, "idempotency-key": "key-1" };

  test("hold together, and the one that signs the id names the delivery", () => {
    expect(verdict({ ...token, ...standard(), ...hub() })).toEqual({
      verified: true,
      scheme: "standard-webhooks",
      deliveryId: "msg_2f",
      bodySignature: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test.each([
    ["a wrong token", { ...hub(), ...standard(), "x-gitlab-token": OTHER }, "mismatch"],
    ["a wrong hub signature", { ...token, ...standard(), ...hub(OTHER) }, "mismatch"],
    ["an empty hub signature", { ...token, "x-hub-signature-256": "" }, "malformed"],
    ["a wrong standard signature", { ...token, ...standard({ secret: OTHER }) }, "mismatch"],
    ["an old standard signature", { ...token, ...standard({ timestamp: "1" }) }, "outside_window"],
  ])("%s refuses the others with it", (_, headers, reason) => {
    expect(verdict(headers)).toEqual(refused(reason));
  });
});

describe("the delivery's id", () => {
  test.each([
    ["GitHub's", { ...hub(), "x-github-delivery": "72d3162e-cc78" }, "72d3162e-cc78"],
    [
      "GitLab's key of repetition",
      { "x-gitlab-token": SECRET, "idempotency-key": "k", "x-gitlab-webhook-uuid": "u" },
      "k",
    ],
    ["GitLab's id of the attempt", { "x-gitlab-token": SECRET, "x-gitlab-webhook-uuid": "u" }, "u"],
    ["none that several events share", { "x-gitlab-token": SECRET, "x-gitlab-event-uuid": "e" }, undefined],
    ["none of another scheme", { ...hub(), "idempotency-key": "k", "webhook-id": "m" }, undefined],
    ["none that is empty", { ...hub(), "x-github-delivery": "" }, undefined],
    ["none with a space", { ...hub(), "x-github-delivery": "a b" }, undefined],
    ["none of 257 characters", { ...hub(), "x-github-delivery": "d".repeat(257) }, undefined],
    ["one of 256 characters", { ...hub(), "x-github-delivery": "d".repeat(256) }, "d".repeat(256)],
  ])("is %s", (_, headers, deliveryId) => {
    const expected = deliveryId === undefined ? {} : { deliveryId };
    const verified = verdict(headers) as { scheme: string; bodySignature?: string };
    const { scheme, bodySignature, ...rest } = verified;
    expect([scheme, bodySignature !== undefined]).toEqual([
      expect.any(String),
      "x-hub-signature-256" in headers,
    ]);
    expect(rest).toEqual({ verified: true, ...expected });
  });
});

test("no change of one bit, in body or signature, is believed", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 64 }),
      fc.nat(),
      fc.integer({ min: 0, max: 7 }),
      (body, at, bit) => {
        const changed = Uint8Array.from(body);
        const index = at % body.length;
        changed[index] = (changed[index] ?? 0) ^ (1 << bit);
        for (const headers of [hub(SECRET, body), standard({ body })]) {
          expect(verdict(headers, { body })).toMatchObject({ verified: true });
          expect(verdict(headers, { body: changed })).toEqual(refused("mismatch"));
        }
      },
    ),
    replay,
  );
});

test("no text in the headers makes the verification fail, and none is believed", () => {
  const header = fc.string({ unit: "binary", maxLength: 80 });
  fc.assert(
    fc.property(header, header, header, header, header, (id, timestamp, signature, hubSignature, token) => {
      const texts = {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature,
        "x-hub-signature-256": hubSignature,
        "x-gitlab-token": token,
      };
      expect(verdict(texts).verified).toBe(false);
      expect(verdict({ "x-gitlab-token": token }).verified).toBe(false);
    }),
    replay,
  );
});
