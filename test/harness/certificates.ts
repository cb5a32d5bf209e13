import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Files of an authority and of what it has signed, in PEM. */
export interface Certificates {
  readonly folder: string;
  /** The authority's certificate. */
  readonly ca: string;
  /** That of another authority, which has signed nothing. */
  readonly otherCa: string;
  /** Makes a key and a certificate. @param extension such as `subjectAltName=IP:127.0.0.1` */
  sign(commonName: string, extension?: string): { readonly cert: string; readonly key: string };
}

/** Makes two authorities, with openssl. @param owner of the keys, which no other user may read */
export function makeCertificates(owner?: { readonly uid: number; readonly gid: number }): Certificates {
  const folder = mkdtempSync(join(tmpdir(), "chartroom-certificates-"));
  chmodSync(folder, 0o755);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const newKey = (name: string) => ["-newkey", "rsa:2048", "-nodes", "-keyout", join(folder, `${name}.key`)];
  const authority = (name: string) => {
    const file = join(folder, `${name}.crt`);
    openssl("req", "-x509", "-days", "2", "-subj", `/CN=${name}`, ...newKey(name), "-out", file);
    return file;
  };
  const [ca, otherCa] = [authority("ca"), authority("other")];
  return {
    folder,
    ca,
    otherCa,
    sign(commonName, extension = "basicConstraints=CA:FALSE") {
      const [request, cert, key] = ["csr", "crt", "key"].map((end) =>
        join(folder, `${commonName}.${end}`),
      ) as [string, string, string];
      const extensions = join(folder, `${commonName}.extensions`);
      writeFileSync(extensions, extension);
      openssl("req", "-subj", `/CN=${commonName}`, ...newKey(commonName), "-out", request);
      const by = ["-CA", ca, "-CAkey", join(folder, "ca.key"), "-CAcreateserial"];
      openssl("x509", "-req", "-days", "2", "-in", request, ...by, "-extfile", extensions, "-out", cert);
      if (owner) chownSync(key, owner.uid, owner.gid);
      return { cert, key };
    },
  };
}
