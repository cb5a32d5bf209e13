import type { Secret_CredentialProxy } from "#gen/service/v1/secret_pb.js";
import { phaseUnsuitable, valueUnusable } from "../../error.ts";
import { canonicalEgressHost } from "../egress-policy.ts";

/** A host into whose requests a secret is put: a name in lower case, and a port. */
export interface CredentialHost {
  readonly host: string;
  readonly port: number;
}

const HTTPS_PORT = 443;

/** Returns the one spelling of a target host, which has no port but 443 unless it names one; undefined for what is none. */
export function credentialHostOf(text: string): CredentialHost | undefined {
  const [, name = "", digits] = /^(.+?)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = canonicalEgressHost(name);
  const port = digits === undefined ? HTTPS_PORT : Number(digits);
  // TLS names no address, so that none can be compared with the certificate's.
  if (host === undefined || host.startsWith("*.") || /^[\d.]+$|:/.test(host)) return undefined;
  return port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** Headers that say where a message ends, to whom it goes or in which form, rather than who sends it. */
const UNFIT_HEADERS: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "expect",
  "host",
  "if-range",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "range",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Requires that secrets with a credential proxy may be stored: servers of the release before would give them to work. @throws DomainError PHASE_UNSUITABLE */
export function requireCredentialProxyKnown(isKnown: boolean): void {
  if (isKnown) return;
  const message = "secrets with credentialProxy can be created once every server runs this release";
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/**
 * Requires that a runner can put a secret into the requests that are meant.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireCredentialProxy({ targetHosts, header }: Secret_CredentialProxy): void {
  if (targetHosts.length === 0)
    throw valueUnusable("credentialProxy.targetHosts", "credentialProxy needs a target host");
  for (const [index, host] of targetHosts.entries()) {
    if (credentialHostOf(host)) continue;
    const field = `credentialProxy.targetHosts[${index}]`;
    throw valueUnusable(
      field,
      `${field} must be the name of a host, with or without a port, not ${JSON.stringify(host)}`,
    );
  }
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header) || UNFIT_HEADERS.has(header.toLowerCase()))
    throw valueUnusable(
      "credentialProxy.header",
      "credentialProxy.header must name a header for credentials",
    );
}

/** The shortest value that is masked where a host answers with it. */
const MIN_VALUE_CHARACTERS = 4;

/**
 * Requires that a value can be put into a header, and be masked.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireHeaderValue(value: string): void {
  if (value.length >= MIN_VALUE_CHARACTERS && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) return;
  throw valueUnusable(
    "value",
    `with credentialProxy the value must be of ${MIN_VALUE_CHARACTERS} characters of ASCII or more, without control characters such as a line end, and without spaces at its ends`,
  );
}

/** Returns what work gets in place of the value of a secret. It is no secret. */
export function placeholderOf(secretId: string): string {
  return `chartroom-placeholder-${secretId}`;
}

/**
 * Returns what is masked of the value of a header: all of it, what follows the name of a scheme, and the two parts
 * of the user and password of the scheme Basic.
 */
export function credentialParts(value: string): readonly string[] {
  const [, scheme = "", credential] = /^([A-Za-z][\w-]*) +(\S.*)$/.exec(value) ?? [];
  if (credential === undefined) return [value];
  if (scheme.toLowerCase() !== "basic") return [value, credential];
  const pair = Buffer.from(credential, "base64").toString();
  return [value, credential, pair, pair.slice(pair.indexOf(":") + 1)];
}
