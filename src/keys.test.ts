import { createHash, createHmac, hkdfSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type Keys, keysFrom, TOKEN_PREFIXES, type TokenKind } from "./keys.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KINDS = Object.keys(TOKEN_PREFIXES) as TokenKind[];
const keys = keysFrom(new Uint8Array(32).fill(1));
const otherKeys = keysFrom(new Uint8Array(32).fill(2));

/** Compares secrets by their hash: the same hash for the same text means the same key. */
const sameSecret = (one: Keys, other: Keys) =>
  one.id === other.id && Buffer.from(one.pageMac(Buffer.from("x"))).equals(other.pageMac(Buffer.from("x")));

describe("a minted token", () => {
  test.each(KINDS)("of kind %s is its prefix, 30 random characters of 62 and a checksum of six", (kind) => {
    expect(keys.mintToken(kind).value).toMatch(new RegExp(`^${TOKEN_PREFIXES[kind]}[0-9A-Za-z]{36}$`));
  });

  test("has a documented prefix", () => {
    expect(TOKEN_PREFIXES).toEqual({
      personal: "cr_pat_",
      service_account: "cr_sat_",
      runner: "cr_run_",
      environment: "cr_env_",
      exchange: "cr_exc_",
      session: "cr_ses_",
      link: "cr_lnk_",
      device: "cr_dev_",
      machine: "cr_mac_",
    });
  });

  test("is typed by people in letters that look like no others, 8 of 20", () => {
    const typed = Array.from({ length: 2_000 }, () => keys.mintTypedCode());
    for (const code of typed) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{8}$/);
    expect(new Set(typed).size).toBe(typed.length);
    for (let place = 0; place < 8; place++) expect(new Set(typed.map((code) => code[place])).size).toBe(20);
  });

  test("is random in 160 bits or more, and every character of the alphabet comes in every place", () => {
    const minted = Array.from({ length: 2_000 }, () => keys.mintToken("personal").value.slice(7, 37));
    expect(new Set(minted).size).toBe(minted.length);
    for (let place = 0; place < 30; place++) {
      expect([...new Set(minted.map((text) => text[place]))].sort().join("")).toBe(ALPHABET);
    }
    expect(30 * Math.log2(ALPHABET.length)).toBeGreaterThanOrEqual(160);
  });

  test.each(KINDS)("of kind %s is read as what it is, with the hash that it was minted with", (kind) => {
    const { value, hash } = keys.mintToken(kind);
    expect(keys.readToken(value)).toEqual({ kind, hash });
    expect(hash).toHaveLength(32);
  });

  test("has its SHA-256 for a hash, which does not contain it and depends on no key", () => {
    const { value, hash } = keys.mintToken("personal");
    expect(Buffer.from(hash).toString("latin1")).not.toContain(value.slice(7, 13));
    expect(hash).toEqual(createHash("sha256").update(value).digest());
    expect(otherKeys.readToken(value)).toEqual({ kind: "personal", hash });
  });

  test.each(KINDS)("of kind %s with any one character changed to any other is refused", (kind) => {
    const slipped: string[] = [];
    let tried = 0;
    for (let sample = 0; sample < 20; sample++) {
      const { value } = keys.mintToken(kind);
      for (let place = 0; place < value.length; place++) {
        for (const other of `${ALPHABET}_-. `) {
          if (other === value[place]) continue;
          const typo = value.slice(0, place) + other + value.slice(place + 1);
          tried += 1;
          if (keys.readToken(typo)) slipped.push(`${value} as ${typo}`);
        }
      }
    }
    expect(tried).toBeGreaterThan(20 * 43 * 64);
    expect(slipped).toEqual([]);
  });

  test("with any two different neighbours exchanged is refused", () => {
    const slipped: string[] = [];
    for (let sample = 0; sample < 1_000; sample++) {
      const { value } = keys.mintToken("personal");
      for (let place = 0; place + 1 < value.length; place++) {
        const [one = "", other = ""] = value.slice(place);
        if (one === other) continue;
        const typo = value.slice(0, place) + other + one + value.slice(place + 2);
        if (keys.readToken(typo)) slipped.push(`${value} as ${typo}`);
      }
    }
    expect(slipped).toEqual([]);
  });

  test("with characters missing, added or around it is refused", () => {
    const { value } = keys.mintToken("personal");
    const others = [
      ...Array.from({ length: value.length }, (_, place) => value.slice(0, place) + value.slice(place + 1)),
      ...Array.from(
        { length: value.length + 1 },
        (_, place) => `${value.slice(0, place)}a${value.slice(place)}`,
      ),
      `${value}\n`,
      ` ${value}`,
      value + value,
      value.toUpperCase(),
      value.toLowerCase(),
    ];
    expect(others.filter((other) => keys.readToken(other))).toEqual([]);
  });

  test("does not become one of another kind by its prefix", () => {
    const { value } = keys.mintToken("exchange");
    expect(keys.readToken(value.replace("cr_exc_", "cr_pat_"))).toBeUndefined();
  });
});

test.each([
  "",
  "cr_pat_",
  "cr_",
  "Bearer",
  "cr_pat_".padEnd(43, "0"),
  "cr_xyz_".padEnd(43, "0"),
  "é".repeat(43),
])("%j is no token", (text) => {
  expect(keys.readToken(text)).toBeUndefined();
});

describe("keys of different secrets", () => {
  test("have different ids, token hashes and page keys", () => {
    const { value } = keys.mintToken("personal");
    const bytes = Buffer.from("page");
    expect(otherKeys.id).not.toBe(keys.id);
    expect(otherKeys.tokenMacs(value)).not.toEqual(keys.tokenMacs(value));
    expect(otherKeys.pageMac(bytes)).not.toEqual(keys.pageMac(bytes));
  });

  test("of the same secret are the same", () => {
    expect(sameSecret(keysFrom(new Uint8Array(32).fill(1)), keys)).toBe(true);
  });

  test("are separate by purpose: a token's HMAC authenticates no page", () => {
    const { value } = keys.mintToken("personal");
    expect(keys.tokenMacs(value)).not.toContainEqual(keys.pageMac(Buffer.from(value)));
  });

  test("have an id that gives nothing of the secret away", () => {
    expect(keys.id).toMatch(/^[0-9a-f]{16}$/);
    expect(keys.id).not.toContain("0101");
  });
});

describe("keys after a rotation", () => {
  const secrets = [3, 2, 1].map((fill) => new Uint8Array(32).fill(fill));
  const rotated = keysFrom(...secrets);
  const place = { table: "host_token", row: "1", column: "sealed_token" };

  test("are named newest first, and what is new is made with the newest", () => {
    expect(rotated.ids).toEqual(secrets.map((secret) => keysFrom(secret).id));
    expect(rotated.id).toBe(rotated.ids[0]);
    expect(rotated.audit.keyId).toBe(rotated.id);
    expect(rotated.seal("value", place).keyId).toBe(rotated.id);
  });

  test("give the HMAC of a token under each of them, as releases before SHA-256 made it", () => {
    const { value } = keys.mintToken("personal");
    const macs = secrets.map((secret) => {
      const key = Buffer.from(hkdfSync("sha256", secret, "", "chartroom token hash", 32));
      return createHmac("sha256", key).update(value).digest();
    });
    expect(rotated.tokenMacs(value)).toEqual(macs);
  });

  test("verify the audit rows and open the values of every one of them", () => {
    const bytes = Buffer.from("a row");
    expect(rotated.auditMac(keys.id, bytes)).toEqual(keys.audit.mac(bytes));
    const { keyId, sealed } = otherKeys.seal("value", place);
    expect(rotated.open(keyId, sealed, place)).toBe("value");
  });

  test("name a key that they lack instead of trying another", () => {
    const { id } = keysFrom(new Uint8Array(32).fill(9));
    const { sealed } = keys.seal("value", place);
    const problem = `the key file does not hold the key ${id}`;
    expect(() => rotated.auditMac(id, Buffer.from("a row"))).toThrow(problem);
    expect(() => rotated.open(id, sealed, place)).toThrow(problem);
  });
});
