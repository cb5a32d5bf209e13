import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { join } from "node:path";
import { readKeyFile } from "../../src/key-file.ts";

/** `Bearer` and one personal token. */
const BEARER = /^bearer +(cr_pat_[0-9A-Za-z]{36}) *$/i;

/** Hashes and signs as the server does, with the keys that it derives from its key file. */
export function openKeys(dataDir: string) {
  const [secret = Buffer.alloc(0)] = readKeyFile(join(dataDir, "key.json"));
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, "", `chartroom ${purpose}`, 32));
  // As key objects: a hash with a key of plain bytes takes Node four times as long.
  const [token, page, audit] = ["token hash", "page token", "audit chain"].map((purpose) =>
    createSecretKey(derive(purpose)),
  ) as [KeyObject, KeyObject, KeyObject];
  return {
    keyId: derive("key id").toString("hex").slice(0, 16),
    /** The hash under which the token of a header is stored; undefined for what is no personal token. */
    tokenHash(authorization: string | undefined): Buffer | undefined {
      const value = BEARER.exec(authorization ?? "")?.[1];
      return value === undefined ? undefined : createHmac("sha256", token).update(value).digest();
    },
    pageMac: (text: string) => createHmac("sha256", page).update(text).digest("base64url"),
    auditMac: (bytes: Uint8Array) => createHmac("sha256", audit).update(bytes).digest(),
  };
}

/** Place of the last project of a page, authenticated; the form is the peers' own. */
export function pageToken(
  keys: Pick<ReturnType<typeof openKeys>, "pageMac">,
  query: readonly unknown[],
  last: { readonly popularity: number; readonly id: string },
): string {
  const position = `${last.popularity}.${last.id}`;
  return `${keys.pageMac(JSON.stringify([query, position]))}.${position}`;
}
