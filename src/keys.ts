import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hash as digest,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomInt,
  randomUUID,
  timingSafeEqual,
} from "node:crypto";
import { crc32 } from "node:zlib";
import { readKeyFile } from "./key-file.ts";

/** The prefixes of tokens, by kind. */
export const TOKEN_PREFIXES = {
  personal: "cr_pat_",
  service_account: "cr_sat_",
  runner: "cr_run_",
  environment: "cr_env_",
  exchange: "cr_exc_",
  session: "cr_ses_",
  link: "cr_lnk_",
  device: "cr_dev_",
  machine: "cr_mac_",
} as const;
export type TokenKind = keyof typeof TOKEN_PREFIXES;

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 30 characters of an alphabet of 62 carry 178 bits; the contract requires at least 160. */
const RANDOM_CHARACTERS = 30;

/** Letters of a code that people type: no similar-looking letters, and no vowels, so that they form no words. */
const TYPED_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
/** 8 letters of an alphabet of 20 carry 34 bits. */
const TYPED_CHARACTERS = 8;
const CHECKSUM_CHARACTERS = 6;
const SECRET_BYTES = 32;
const KINDS = new Map(
  Object.entries(TOKEN_PREFIXES).map(([kind, prefix]) => [prefix as string, kind as TokenKind]),
);
const TOKEN = new RegExp(
  `^(${[...KINDS.keys()].join("|")})[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`,
);

export interface TokenValue {
  /** The secret itself, shown once. */
  readonly value: string;
  /** The SHA-256 of the value. A fast hash without a key is safe here because the value is random. */
  readonly hash: Uint8Array;
}

/** The server's secrets and the operations that use them. */
export interface Keys {
  /** The id of the newest secret; it is safe to store and to log. */
  readonly id: string;
  /** The ids of all secrets in the file, newest first; rows name the secret they were created with. */
  readonly ids: readonly string[];
  mintToken(kind: TokenKind): TokenValue;
  /** Returns the kind and the hash of a well-formed token; undefined for any other text. */
  readToken(value: string): { readonly kind: TokenKind; readonly hash: Uint8Array } | undefined;
  /** Returns the id of a new invite, a random UUID (version 4), and its SHA-256. */
  mintInvite(): TokenValue;
  /** Returns a new code that people type: 8 letters, too few to be stored under a hash without a key. */
  mintTypedCode(): string;
  /** Returns the SHA-256 under which a random secret is stored. */
  hashOf(value: string): Uint8Array;
  /** Returns the HMACs under which older releases stored a token, one for each secret, newest first. */
  tokenMacs(value: string): readonly Uint8Array[];
  /** Returns 32 random bytes, for a secret with which others sign. */
  randomSecret(): Uint8Array;
  /** Authenticates a page token. */
  pageMac(bytes: Uint8Array): Uint8Array;
  /** Starts the hashes of a request that may be repeated, under each secret. */
  beginRequestMacs(): {
    update(bytes: Uint8Array): void /** Newest first. */;
    digests(): readonly Uint8Array[];
  };
  /** Computes the hashes of new audit rows, with the newest secret. */
  readonly audit: { readonly keyId: string; mac(bytes: Uint8Array): Uint8Array };
  /**
   * Computes the hash of an audit row, new or old.
   * @throws when its secret is not in the file
   */
  auditMac(keyId: string, bytes: Uint8Array): Uint8Array;
  /** Encrypts a value; `place` binds it to one place in the database. */
  seal(value: string, place: AssociatedData): { readonly keyId: string; readonly sealed: Uint8Array };
  /**
   * Decrypts a value.
   * @throws when the value was changed or moved to another place, or its secret is not in the file
   */
  open(keyId: string, sealed: Uint8Array, place: AssociatedData): string;
}

/**
 * Reads the key file, or creates one that only its owner can read.
 *
 * @throws when the file cannot be read or holds no key
 */
export function loadKeys(file: string): Keys {
  return keysFrom(...readKeyFile(file));
}

/** Returns a function that computes the hash of an audit row; undefined for a row whose secret is not in the file. */
export const auditMacOf =
  ({ ids, auditMac }: Pick<Keys, "ids" | "auditMac">) =>
  (keyId: string, bytes: Uint8Array): Uint8Array | undefined =>
    ids.includes(keyId) ? auditMac(keyId, bytes) : undefined;

type Mac = (value: string | Uint8Array) => Uint8Array;

/** The keys that are derived from one secret: one for each purpose, so that none can be used for another. */
interface Ring {
  readonly id: string;
  readonly token: Mac;
  readonly page: Mac;
  readonly request: KeyObject;
  readonly audit: Mac;
  readonly seal: Buffer;
}

/**
 * Derives the keys of the given secrets.
 * @param secrets newest first, at least one
 */
export function keysFrom(...secrets: readonly Uint8Array[]): Keys {
  const rings = secrets.map(deriveRing);
  const [newest] = rings;
  if (!newest) throw new Error("the key file holds no key");
  const ringOf = (keyId: string): Ring => {
    const ring = rings.find(({ id }) => id === keyId);
    if (!ring) throw new Error(`the key file does not hold the key ${keyId}`);
    return ring;
  };
  return {
    id: newest.id,
    ids: rings.map(({ id }) => id),
    mintToken(kind) {
      const unchecked = TOKEN_PREFIXES[kind] + randomText(ALPHABET, RANDOM_CHARACTERS);
      const value = unchecked + checksum(unchecked);
      return { value, hash: digest("sha256", value, "buffer") };
    },
    readToken(value) {
      const kind = KINDS.get(TOKEN.exec(value)?.[1] ?? "");
      if (kind === undefined) return undefined;
      if (!value.endsWith(checksum(value.slice(0, -CHECKSUM_CHARACTERS)))) return undefined;
      return { kind, hash: digest("sha256", value, "buffer") };
    },
    mintInvite() {
      const value = randomUUID();
      return { value, hash: digest("sha256", value, "buffer") };
    },
    mintTypedCode: () => randomText(TYPED_LETTERS, TYPED_CHARACTERS),
    hashOf: (value) => digest("sha256", value, "buffer"),
    tokenMacs: (value) => rings.map(({ token }) => token(value)),
    randomSecret: () => randomBytes(SECRET_BYTES),
    pageMac: (bytes) => newest.page(bytes),
    beginRequestMacs() {
      const macs = rings.map(({ request }) => createHmac("sha256", request));
      return {
        update(bytes) {
          for (const mac of macs) mac.update(bytes);
        },
        digests: () => macs.map((mac) => mac.digest()),
      };
    },
    audit: { keyId: newest.id, mac: (bytes) => newest.audit(bytes) },
    auditMac: (keyId, bytes) => ringOf(keyId).audit(bytes),
    seal: (value, place) => ({ keyId: newest.id, sealed: sealWith(newest.seal, value, place) }),
    open: (keyId, sealed, place) => openWith(ringOf(keyId).seal, sealed, place),
  };
}

function randomText(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
}

function deriveRing(secret: Uint8Array): Ring {
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, "", `chartroom ${purpose}`, 32));
  // Created once: when it is given bytes, Node creates a key object for each hash, which takes three
  // times as long.
  const hmacKeyFor = (purpose: string): KeyObject => createSecretKey(derive(purpose));
  const hmacFor = (purpose: string): Mac => {
    const key = hmacKeyFor(purpose);
    return (value) => createHmac("sha256", key).update(value).digest();
  };
  return {
    id: derive("key id").toString("hex").slice(0, 16),
    token: hmacFor("token hash"),
    page: hmacFor("page token"),
    request: hmacKeyFor("repeatable request"),
    audit: hmacFor("audit chain"),
    seal: derive("sealed value"),
  };
}

/**
 * Returns a CRC-32 in six characters. It distinguishes a mistyped token from an
 * unknown one, and has no role in security.
 */
function checksum(text: string): string {
  let rest = crc32(text);
  let characters = "";
  while (characters.length < CHECKSUM_CHARACTERS) {
    characters = (ALPHABET[rest % ALPHABET.length] ?? "") + characters;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return characters;
}

/** Compares secrets in a time that does not depend on where they differ. */
export function equalBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

const CIPHER = "aes-256-gcm";
/** 96 bits, the recommended length for GCM. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Identifies the place of an encrypted value, which cannot be decrypted for another place. */
export interface AssociatedData {
  readonly table: string;
  readonly row: string;
  readonly column: string;
}

/**
 * Encrypts a value; returns nonce, authentication tag and cipher text in
 * sequence. The nonce is new for each value.
 */
export function sealWith(key: Uint8Array, value: string, place: AssociatedData): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(placeBytes(place));
  const text = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

/**
 * Decrypts a value.
 * @throws when the value was changed, moved to another place, or encrypted with
 *   another key
 */
export function openWith(key: Uint8Array, sealed: Uint8Array, place: AssociatedData): string {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(placeBytes(place))
    .setAuthTag(tag);
  const text = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

function placeBytes({ table, row, column }: AssociatedData): Buffer {
  return Buffer.from(JSON.stringify([table, row, column]), "utf8");
}
