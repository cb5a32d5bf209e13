import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Makes a certificate for a host, which is its own authority, with openssl. @returns it in PEM */
export function makeCertificate(folder: string, host: string): string {
  const [cert, key] = [join(folder, "chartroom.crt"), join(folder, "chartroom.key")];
  const form = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const subject = ["-subj", `/CN=${host}`, "-addext", `subjectAltName=DNS:${host}`];
  execFileSync("openssl", ["req", ...form, ...subject, "-keyout", key, "-out", cert], { stdio: "pipe" });
  return readFileSync(cert, "utf8");
}
