import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { endNodes, startNode } from "../test/harness/node-process.ts";
import { stopAll, temporaryFolder } from "../test/harness/server.ts";
import { type Keys, keysFrom, loadKeys, TOKEN_PREFIXES, type TokenKind } from "./keys.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KINDS = Object.keys(TOKEN_PREFIXES) as TokenKind[];
const keys = keysFrom(new Uint8Array(32).fill(1));
const otherKeys = keysFrom(new Uint8Array(32).fill(2));
const newFile = () => join(temporaryFolder(), "key.json");

/** The hash stands for the secret: the same hash for the same text means the same key. */
const sameSecret = (one: Keys, other: Keys) =>
  one.id === other.id && Buffer.from(one.pageMac(Buffer.from("x"))).equals(other.pageMac(Buffer.from("x")));

describe("the key file", () => {
  test("is made once, for its owner alone, and then only read", () => {
    const file = newFile();
    const made = loadKeys(file);
    const content = readFileSync(file, "utf8");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(Buffer.from(JSON.parse(content).secret, "base64")).toHaveLength(32);
    expect(sameSecret(loadKeys(file), made)).toBe(true);
    expect(readFileSync(file, "utf8")).toBe(content);
    expect(readdirSync(join(file, ".."))).toEqual(["key.json"]);
  });

  test("holds another secret each time that one is made", () => {
    expect(loadKeys(newFile()).id).not.toBe(loadKeys(newFile()).id);
  });

  test("is read when only its owner may read it", () => {
    const file = newFile();
    const { id } = loadKeys(file);
    chmodSync(file, 0o400);
    expect(loadKeys(file).id).toBe(id);
  });

  test("is the same one for processes that start at once, and whole from the moment that it can be seen", async () => {
    // Two make it at the same instant; the third reads it as soon as it is there.
    const racers = ["maker", "maker", "watcher"].map((role) =>
      startNode(
        `
        import { existsSync } from "node:fs";
        import { loadKeys } from "./src/keys.ts";
        const [, role] = process.argv;
        print("ready");
        for (let line = await told(); line; line = await told()) {
          const { file, at } = JSON.parse(line);
          while (role === "watcher" ? !existsSync(file) : performance.timeOrigin + performance.now() < at);
          try { print(loadKeys(file).id); } catch (error) { print(error.message); }
        }`,
        role,
      ),
    );
    await Promise.all(racers.map((racer) => racer.next()));
    for (let round = 0; round < 100; round++) {
      const folder = temporaryFolder();
      const file = join(folder, "key.json");
      const at = performance.timeOrigin + performance.now() + 2;
      for (const racer of racers) racer.tell(JSON.stringify({ file, at }));
      const ids = await Promise.all(racers.map((racer) => racer.next()));
      expect(ids).toEqual(racers.map(() => loadKeys(file).id));
      expect(readdirSync(folder)).toEqual(["key.json"]);
    }
  });

  const SECRET = Buffer.alloc(32, 0x5a).toString("base64");
  test.each([
    ["is empty", ""],
    ["is no JSON", `{"version": 1, "secret": "${SECRET}`],
    ["is the bare secret", SECRET],
    ["has no secret", `{"version": 1, "key": "${SECRET}"}`],
    ["has a secret that is no text", `{"version": 1, "secret": ["${SECRET}"]}`],
    ["has a secret that is too short", `{"version": 1, "secret": "${SECRET.slice(0, 40)}"}`],
    ["has a secret that is too long", `{"version": 1, "secret": "${SECRET.slice(0, 40)}${SECRET}"}`],
    [
      "has a secret with a character changed to one of no meaning",
      `{"secret": "${SECRET.replace("W", "*")}"}`,
    ],
    ["is null", "null"],
  ])("is refused, named and not quoted when it %s", (_, content) => {
    const file = newFile();
    writeFileSync(file, content);
    let thrown: { message?: string; stack?: string; cause?: unknown } = {};
    try {
      loadKeys(file);
    } catch (error) {
      thrown = error as Error;
    }
    expect(thrown.message).toContain(`the key file ${file}`);
    expect(thrown.stack).not.toContain(SECRET.slice(0, 6));
    expect(thrown.cause).toBeUndefined();
    expect(readFileSync(file, "utf8")).toBe(content);
  });

  test("is refused when it is a folder", () => {
    const file = newFile();
    mkdirSync(file);
    expect(() => loadKeys(file)).toThrow(`the key file ${file} cannot be read`);
  });

  test("is not made where there is no folder for it", () => {
    const file = join(temporaryFolder(), "absent", "key.json");
    expect(() => loadKeys(file)).toThrow("absent");
    expect(existsSync(join(file, ".."))).toBe(false);
  });
});

describe("a minted token", () => {
  test.each(KINDS)("of kind %s is its prefix, 30 random characters of 62 and a checksum of six", (kind) => {
    expect(keys.mintToken(kind).value).toMatch(new RegExp(`^${TOKEN_PREFIXES[kind]}[0-9A-Za-z]{36}$`));
  });

  test("has a documented prefix", () => {
    expect(TOKEN_PREFIXES).toEqual({ personal: "cr_pat_", exchange: "cr_exc_" });
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
    const { value, hash, keyId } = keys.mintToken(kind);
    expect(keys.readToken(value)).toEqual({ kind, hash });
    expect(hash).toHaveLength(32);
    expect(keyId).toBe(keys.id);
  });

  test("has a hash that does not contain it and that another server's key does not give", () => {
    const { value, hash } = keys.mintToken("personal");
    expect(Buffer.from(hash).toString("latin1")).not.toContain(value.slice(7, 13));
    expect(otherKeys.readToken(value)?.hash).not.toEqual(hash);
    expect(otherKeys.readToken(value)?.kind).toBe("personal");
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
    expect(otherKeys.readToken(value)?.hash).not.toEqual(keys.readToken(value)?.hash);
    expect(otherKeys.pageMac(bytes)).not.toEqual(keys.pageMac(bytes));
  });

  test("of the same secret are the same", () => {
    expect(sameSecret(keysFrom(new Uint8Array(32).fill(1)), keys)).toBe(true);
  });

  test("stand apart by purpose: a token's hash authenticates no page", () => {
    const { value, hash } = keys.mintToken("personal");
    expect(keys.pageMac(Buffer.from(value))).not.toEqual(hash);
  });

  test("have an id that gives nothing of the secret away", () => {
    expect(keys.id).toMatch(/^[0-9a-f]{16}$/);
    expect(keys.id).not.toContain("0101");
  });
});
