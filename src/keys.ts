import { createHmac, hkdfSync, randomBytes, randomInt } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";

/** What a token opens, by its prefix. */
export const TOKEN_PREFIXES = { personal: "cr_pat_", exchange: "cr_exc_" } as const;
export type TokenKind = keyof typeof TOKEN_PREFIXES;

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 30 characters of 62 carry 178 bits; the contract asks for 160 or more. */
const RANDOM_CHARACTERS = 30;
const CHECKSUM_CHARACTERS = 6;
const TOKEN_BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`);

/** Bytes of the secret in the key file. */
const SECRET_BYTES = 32;

export interface TokenValue {
  /** The secret itself, shown once. */
  readonly value: string;
  readonly hash: Uint8Array;
  readonly keyId: string;
}

/** The secrets of the server and what is done with them. */
export interface Keys {
  /** Names the key file; it is safe to store and to log. */
  readonly id: string;
  mintToken(kind: TokenKind): TokenValue;
  /** Kind and hash of a well-formed token; undefined for any other text, found out without the database. */
  readToken(value: string): { readonly kind: TokenKind; readonly hash: Uint8Array } | undefined;
  /** Authenticates a page token. */
  pageMac(bytes: Uint8Array): Uint8Array;
}

/**
 * Reads the key file, or makes one that only its owner can read.
 *
 * @throws when the file cannot be read or holds no key
 */
export function loadKeys(file: string): Keys {
  if (!existsSync(file)) makeKeyFile(file);
  return keysFrom(readSecret(file));
}

/** The file appears whole or not at all, so that no other process, nor a later start, finds half a key. */
function makeKeyFile(file: string): void {
  const secret = randomBytes(SECRET_BYTES).toString("base64");
  const draft = `${file}.${randomBytes(8).toString("hex")}`;
  const content = `${JSON.stringify({ version: 1, secret })}\n`;
  try {
    writeFileSync(draft, content, { mode: 0o600, flag: "wx", flush: true });
    // Unlike a rename it fails when another process was first, and that one's file is read.
    linkSync(draft, file);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function readSecret(file: string): Buffer {
  let secret: unknown;
  try {
    secret = JSON.parse(readFileSync(file, "utf8")).secret;
  } catch (error) {
    // Not the parser's own message: it may quote what the file holds.
    throw new Error(
      `the key file ${file} cannot be read${error instanceof SyntaxError ? ": it is no JSON" : ""}`,
    );
  }
  const bytes = typeof secret === "string" ? Buffer.from(secret, "base64") : Buffer.alloc(0);
  if (bytes.length !== SECRET_BYTES)
    throw new Error(`the key file ${file} holds no key of ${SECRET_BYTES} bytes`);
  return bytes;
}

/** A key of its own for each purpose, so that none can stand in for another. */
export function keysFrom(secret: Uint8Array): Keys {
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, "", `chartroom ${purpose}`, 32));
  const tokenKey = derive("token hash");
  const pageKey = derive("page token");
  const id = derive("key id").toString("hex").slice(0, 16);
  const hash = (value: string) => createHmac("sha256", tokenKey).update(value).digest();
  return {
    id,
    mintToken(kind) {
      const random = Array.from(
        { length: RANDOM_CHARACTERS },
        () => ALPHABET[randomInt(ALPHABET.length)],
      ).join("");
      const unchecked = TOKEN_PREFIXES[kind] + random;
      const value = unchecked + checksum(unchecked);
      return { value, hash: hash(value), keyId: id };
    },
    readToken(value) {
      for (const [kind, prefix] of Object.entries(TOKEN_PREFIXES) as [TokenKind, string][]) {
        if (!value.startsWith(prefix) || !TOKEN_BODY.test(value.slice(prefix.length))) continue;
        const unchecked = value.slice(0, -CHECKSUM_CHARACTERS);
        if (value !== unchecked + checksum(unchecked)) return undefined;
        return { kind, hash: hash(value) };
      }
      return undefined;
    },
    pageMac: (bytes) => createHmac("sha256", pageKey).update(bytes).digest(),
  };
}

/** CRC-32 in six characters: tells a mistyped token from an unknown one, and hides nothing. */
function checksum(text: string): string {
  let rest = crc32(text);
  let characters = "";
  while (characters.length < CHECKSUM_CHARACTERS) {
    characters = (ALPHABET[rest % ALPHABET.length] ?? "") + characters;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return characters;
}
