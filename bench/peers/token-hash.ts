import { createHmac, hash, hkdfSync } from "node:crypto";
import { join } from "node:path";
import { readKeyFile } from "../../src/key-file.ts";

/** `Bearer` and one personal token. */
const BEARER = /^bearer +(cr_pat_[0-9A-Za-z]{36}) *$/i;

/** Hashes and signs as the server does, with the keys that it derives from its key file. */
export function openKeys(dataDir: string) {
  const [secret = Buffer.alloc(0)] = readKeyFile(join(dataDir, "key.json"));
  const derive = (purpose: string) => Buffer.from(hkdfSync("sha256", secret, "", `chartroom ${purpose}`, 32));
  const macFor = (purpose: string) => {
    const key = derive(purpose);
    return (value: string | Uint8Array) => createHmac("sha256", key).update(value).digest();
  };
  const [page, audit] = [macFor("page token"), macFor("audit chain")];
  return {
    keyId: derive("key id").toString("hex").slice(0, 16),
    /** The hash under which the token of a header is stored; undefined for what is no personal token. */
    tokenHash(authorization: string | undefined): Buffer | undefined {
      const value = BEARER.exec(authorization ?? "")?.[1];
      return value === undefined ? undefined : hash("sha256", value, "buffer");
    },
    pageMac: (text: string) => page(text).toString("base64url"),
    auditMac: audit,
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
