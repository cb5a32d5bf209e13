import { generateKeyPairSync, sign } from "node:crypto";

/** Object identifiers in DER: ecdsa-with-SHA256, and commonName. */
const ECDSA_WITH_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");

/**
 * Creates a self-signed certificate with its key, valid from 2020 on; created here so that the repository contains no key.
 * @param until two digits of the last year of its validity
 */
export function selfSigned(until = "49"): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(ECDSA_WITH_SHA256);
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from("localhost")))));
  const validity = sequence(utcTime("200101000000Z"), utcTime(`${until}1231235959Z`));
  const serial = der(0x02, Buffer.from([1]));
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    serial,
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = sign("sha256", content, privateKey);
  const certificate = sequence(content, algorithm, der(0x03, Buffer.from([0]), signature));
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
  };
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function utcTime(time: string): Buffer {
  return der(0x17, Buffer.from(time));
}

/** Returns one DER element: tag, length, content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
