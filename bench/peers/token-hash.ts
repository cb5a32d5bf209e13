import { createHmac, hash, hkdfSync } from "node:crypto";
import { join } from "node:path";
import { readKeyFile } from "../../src/key-file.ts";

/** `Bearer` and one personal token. */
const BEARER = /^bearer +(cr_pat_[0-9A-Za-z]{36}) *$/i;

/** Returns functions that hash and sign like the server, with the keys that it derives from its key file. */
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
    /** Returns the stored hash of the token in a header; undefined if it is no personal token. */
    tokenHash(authorization: string | undefined): Buffer | undefined {
      const value = BEARER.exec(authorization ?? "")?.[1];
      return value === undefined ? undefined : hash("sha256", value, "buffer");
    },
    pageMac: (text: string) => page(text).toString("base64url"),
    auditMac: audit,
  };
}

/** Returns an authenticated page token with the position of a page's last project, in the peers' own format. */
export function pageToken(
  keys: Pick<ReturnType<typeof openKeys>, "pageMac">,
  query: readonly unknown[],
  last: { readonly popularity: number; readonly id: string },
): string {
  const position = `${last.popularity}.${last.id}`;
  return `${keys.pageMac(JSON.stringify([query, position]))}.${position}`;
}
