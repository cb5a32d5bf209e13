import { createHash, randomBytes } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { BaseBlock } from "asn1js";

/** A certificate authority whose key never leaves this process. */
export interface CredentialAuthority {
  /** Its certificate, in PEM. */
  readonly certificate: string;
  /** Returns the certificate and key with which this process impersonates a host. */
  contextFor(host: string): Promise<SecureContext>;
}

/** An algorithm that every TLS client accepts. */
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const DAY_MS = 86_400_000;
/** Longer than any piece of work takes. */
const VALID_DAYS = 825;
const COMMON_NAME = "2.5.4.3";
const SERVER_AUTHENTICATION = "1.3.6.1.5.5.7.3.1";
/** Bits of the extension KeyUsage in its BIT STRING, and the number of unused bits at its end. */
const USAGE = {
  digitalSignature: { bits: 0x80, unusedBits: 7 },
  signing: { bits: 0x06, unusedBits: 1 },
} as const;
const DNS_NAME = 2;

/** Creates a certificate authority for a single piece of work. @param now milliseconds since 1970 UTC */
export async function createCredentialAuthority(now: number): Promise<CredentialAuthority> {
  // Loaded on demand: work without such secrets does not need these libraries.
  const asn1 = await import("asn1js");
  const pki = await import("pkijs");
  const newKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const [own, leaf] = await Promise.all([newKeys(), newKeys()]);

  const extension = (extnID: string, critical: boolean, value: BaseBlock) =>
    new pki.Extension({ extnID, critical, extnValue: value.toBER(false) });
  const usage = ({ bits, unusedBits }: { readonly bits: number; readonly unusedBits: number }) =>
    extension(pki.id_KeyUsage, true, new asn1.BitString({ valueHex: ownBytes([bits]), unusedBits }));
  /** Returns the SHA-1 of a key, which identifies it in certificates (RFC 5280, 4.2.1.2). */
  const idOf = async (key: CryptoKey) => {
    const info = new pki.PublicKeyInfo();
    await info.importKey(key);
    return new asn1.OctetString({
      valueHex: ownBytes(createHash("sha1").update(info.subjectPublicKey.valueBlock.valueHexView).digest()),
    });
  };
  const nameOf = (value: string) =>
    new pki.RelativeDistinguishedNames({
      typesAndValues: [
        new pki.AttributeTypeAndValue({ type: COMMON_NAME, value: new asn1.Utf8String({ value }) }),
      ],
    });
  const ownId = await idOf(own.publicKey);
  const issuer = nameOf("Egress proxy of this environment");

  const sign = async (
    subject: typeof issuer,
    publicKey: CryptoKey,
    extensions: readonly InstanceType<typeof pki.Extension>[],
  ) => {
    const certificate = new pki.Certificate();
    certificate.version = 2;
    // The first byte makes the number positive.
    certificate.serialNumber = new asn1.Integer({
      valueHex: ownBytes([1, ...randomBytes(15)]),
    });
    certificate.issuer = issuer;
    certificate.subject = subject;
    // The clock of a client may be slightly behind.
    certificate.notBefore.value = new Date(now - DAY_MS);
    certificate.notAfter.value = new Date(now + VALID_DAYS * DAY_MS);
    certificate.extensions = [...extensions];
    await certificate.subjectPublicKeyInfo.importKey(publicKey);
    await certificate.sign(own.privateKey, "SHA-256");
    return toPem("CERTIFICATE", certificate.toSchema(true).toBER(false));
  };

  const certificate = await sign(issuer, own.publicKey, [
    extension(
      pki.id_BasicConstraints,
      true,
      new pki.BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(),
    ),
    usage(USAGE.signing),
    extension(pki.id_SubjectKeyIdentifier, false, ownId),
  ]);
  const key = toPem("PRIVATE KEY", await crypto.subtle.exportKey("pkcs8", leaf.privateKey));
  const leafId = await idOf(leaf.publicKey);
  const signFor = async (host: string) => {
    // Some host names exceed the length of a common name. Clients check the alternative names instead.
    const cert = await sign(nameOf("Egress proxy"), leaf.publicKey, [
      extension(pki.id_BasicConstraints, true, new pki.BasicConstraints({ cA: false }).toSchema()),
      usage(USAGE.digitalSignature),
      extension(
        pki.id_ExtKeyUsage,
        false,
        new pki.ExtKeyUsage({ keyPurposes: [SERVER_AUTHENTICATION] }).toSchema(),
      ),
      extension(
        pki.id_SubjectAltName,
        false,
        new pki.GeneralNames({ names: [new pki.GeneralName({ type: DNS_NAME, value: host })] }).toSchema(),
      ),
      extension(pki.id_SubjectKeyIdentifier, false, leafId),
      extension(
        pki.id_AuthorityKeyIdentifier,
        false,
        new pki.AuthorityKeyIdentifier({ keyIdentifier: ownId }).toSchema(),
      ),
    ]);
    return createSecureContext({ cert, key, minVersion: "TLSv1.2" });
  };
  const contexts = new Map<string, Promise<SecureContext>>();
  return {
    certificate,
    contextFor(host) {
      const known = contexts.get(host) ?? signFor(host);
      contexts.set(host, known);
      return known;
    },
  };
}

function toPem(label: string, content: ArrayBuffer): string {
  const lines =
    Buffer.from(content)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

/** Copies bytes into a new buffer, since a Buffer's pool may hold other data, which would end up in the certificate. */
function ownBytes(bytes: ArrayLike<number>): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
