import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, request as openRequest, type Server } from "node:https";
import type { Socket } from "node:net";
import { Transform } from "node:stream";
import { createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from "node:tls";
import {
  type CredentialHost,
  credentialHostOf,
  credentialParts,
  placeholderOf,
} from "../../domain/policy/proxied-secret/credential-proxy.ts";
import { type SecretMask, Secrets } from "../../domain/secrets.ts";
import { type CredentialAuthority, createCredentialAuthority } from "./credential-authority.ts";
import { type EgressTarget, parseHost } from "./egress-rules.ts";
import {
  type EgressPassage,
  endToEnd,
  forwardRequest,
  framing,
  oneAtATime,
  type PassedAnswer,
  rejectRequest,
} from "./forward-request.ts";

/** A secret that the proxy injects into requests. */
export interface ProxiedSecret {
  readonly secretId: string;
  readonly value: string;
  readonly targetHosts: readonly string[];
  readonly header: string;
}

/** Injects secrets into the work's requests to their hosts. The work itself only has the authority's certificate. */
export interface CredentialProxy {
  /** The authority's certificate in PEM, which makes the work accept this proxy in place of the hosts. */
  readonly certificate: string;
  /** Returns whether a connection to a target must go through this proxy. */
  takes(target: EgressTarget): boolean;
  /** Serves a connection in place of a target that {@link takes} accepts. */
  serve(client: Socket, target: EgressTarget, passage: EgressPassage): void;
}

/**
 * Creates the proxy for the secrets of a piece of work.
 *
 * @param trusted the authorities that hosts are verified with
 * @param now milliseconds since 1970 UTC
 */
export async function createCredentialProxy(
  secrets: readonly ProxiedSecret[],
  trusted: SecureContext,
  now: number,
): Promise<CredentialProxy> {
  const byHost = new Map<string, ProxiedSecret[]>();
  for (const secret of secrets)
    for (const host of secret.targetHosts) {
      const found = credentialHostOf(host);
      if (found) byHost.set(keyOf(found), [...(byHost.get(keyOf(found)) ?? []), secret]);
    }
  const masked = new Secrets();
  for (const { value } of secrets) for (const part of credentialParts(value)) masked.add(part);
  // A host may echo a value in lower case.
  const values = new Secrets();
  values.addAll(masked);
  values.addInLowerCase(masked);
  const authority = await createCredentialAuthority(now);
  const servers = new Map<string, Server>();
  return {
    certificate: authority.certificate,
    takes: (target) => byHost.has(keyOf(target)),
    serve(client, target, passage) {
      const key = keyOf(target);
      const host = { target, secrets: byHost.get(key) ?? [], masked: values, trusted, passage };
      const server = servers.get(key) ?? createHostServer(authority, host);
      servers.set(key, server);
      server.emit("connection", client);
    },
  };
}

/**
 * Returns the authorities that hosts are verified with: those of Node, of the machine and `more`.
 * @param more certificates in PEM
 */
export function trustedAuthorities(more: readonly string[] = []): SecureContext {
  const ca = new Set([...getCACertificates("default"), ...getCACertificates("system"), ...more]);
  return createSecureContext({ ca: [...ca], minVersion: "TLSv1.2" });
}

/** Returns the certificates that the work trusts, in PEM: those of the machine's authorities and of the proxy's. */
export function trustedByWork({ certificate }: Pick<CredentialProxy, "certificate">): string {
  // A machine may have the same certificate in several files.
  const system = new Set(getCACertificates("system"));
  return [...(system.size > 0 ? system : getCACertificates("bundled")), certificate]
    .map((each) => `${each.trim()}\n`)
    .join("");
}

function keyOf({ host, port }: CredentialHost): string {
  return `${host}:${port}`;
}

interface ServedHost {
  readonly target: EgressTarget;
  readonly secrets: readonly ProxiedSecret[];
  /** The values that are masked in answers. */
  readonly masked: Secrets;
  readonly trusted: SecureContext;
  readonly passage: EgressPassage;
}

/** Returns a server that answers in place of a host. It does not listen: it is given its connections. */
function createHostServer(authority: CredentialAuthority, served: ServedHost): Server {
  const { target } = served;
  const server = createServer(
    {
      requestTimeout: 0,
      // HTTP/2 is not offered: clients fall back to HTTP/1.1 or fail.
      ALPNProtocols: ["http/1.1"],
      SNICallback(name, callback) {
        if (parseHost(name)?.host !== target.host) return callback(new Error("another host"));
        authority.contextFor(target.host).then((context) => callback(null, context), callback);
      },
    },
    oneAtATime((req, res) => passOn(req, res, served)),
  );
  // A client that sends no name gets no certificate.
  server.on("secureConnection", (socket) => {
    if (!isNamed(socket, target)) socket.destroy();
  });
  server.on("upgrade", (req, socket) => {
    socket.end("HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    req.destroy();
  });
  return server;
}

function isNamed({ servername }: Pick<TLSSocket, "servername">, target: EgressTarget): boolean {
  return typeof servername === "string" && parseHost(servername)?.host === target.host;
}

/** Request headers that would make the answer partial or encoded, so that secrets in it could not be masked. */
const UNMASKABLE = ["accept-charset", "accept-encoding", "range", "if-range"];

async function passOn(req: IncomingMessage, res: ServerResponse, served: ServedHost): Promise<void> {
  const { target, secrets, masked, trusted, passage } = served;
  const path = req.url ?? "";
  if (!isNamed(req.socket as TLSSocket, target) || !isMeant(req, target))
    return rejectRequest(res, 421, `the header Host must be that of the connection, ${keyOf(target)}`);
  if (!path.startsWith("/") && path !== "*")
    return rejectRequest(res, 400, "the target of a request must be a path");
  const replaced = secrets.map(({ header }) => header.toLowerCase());
  const headers = [
    ...endToEnd(req.rawHeaders, "host", "expect", ...UNMASKABLE, ...replaced),
    ...["Host", target.port === 443 ? target.host : keyOf(target)],
    ...["Accept-Encoding", "identity"],
    ...secrets.flatMap((secret, index) =>
      // If several secrets use the same header, the first one wins.
      replaced.indexOf(secret.header.toLowerCase()) === index ? headerOf(req, secret) : [],
    ),
    ...framing(req),
  ];
  // Explicit, so that the runner's environment variables cannot disable the verification.
  const verification = { servername: target.host, secureContext: trusted, rejectUnauthorized: true };
  return forwardRequest(
    req,
    res,
    {
      target,
      open: (options) => openRequest({ ...options, path, headers, ...verification }),
      toAnswer: (received) => maskedAnswer(received, req.method ?? "", masked),
    },
    passage,
  );
}

/** Returns whether a request has exactly one Host header and it names the host of the connection. */
function isMeant({ rawHeaders }: IncomingMessage, { host, port }: EgressTarget): boolean {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const index = names.indexOf("host");
  if (index < 0 || names.lastIndexOf("host") !== index) return false;
  const named = parseHost(rawHeaders[2 * index + 1] ?? "");
  return named?.host === host && (named.port ?? 443) === port;
}

/**
 * Returns the name and value of the header with a secret. The secret replaces the placeholder in the work's header, or
 * is the whole value if the work sends no placeholder.
 */
function headerOf(req: IncomingMessage, { secretId, header, value }: ProxiedSecret): readonly string[] {
  const sent = req.headers[header.toLowerCase()];
  const placeholder = placeholderOf(secretId);
  const holds = typeof sent === "string" && sent.includes(placeholder);
  return [header, holds ? sent.replaceAll(placeholder, () => value) : value];
}

/** Returns an answer with masked secrets, or the reason why the work gets none. */
function maskedAnswer(received: IncomingMessage, method: string, masked: Secrets): PassedAnswer | string {
  const { statusCode = 0, statusMessage = "", rawHeaders } = received;
  const hasBody = method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  const coding = codingOf(received);
  if (hasBody && coding !== "")
    return `the host's answer is encoded (${masked.maskText(coding)}), though it was asked for one that is not: secrets in it would not be found`;
  return {
    statusMessage: masked.maskText(statusMessage),
    // Masking may change the length.
    headers: endToEnd(rawHeaders, ...(hasBody ? ["content-length"] : [])).map((text) =>
      masked.maskText(text),
    ),
    body: maskingStream(masked.stream()),
  };
}

/** Returns the content, transfer and text encodings of an answer's body; empty if ASCII appears in it unchanged. */
function codingOf({ headers }: IncomingMessage): string {
  const { "content-encoding": content = "", "transfer-encoding": transfer = "" } = headers;
  const codings = `${content},${transfer}`.split(",").map((each) => each.trim());
  const [, charset = ""] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers["content-type"] ?? "") ?? [];
  const wide = WIDE_CHARSET.test(charset) ? [charset] : [];
  return [...codings.filter((each) => !/^(identity|chunked)?$/i.test(each)), ...wide].join(", ");
}

/** Text encodings in which ASCII characters are not their usual single bytes. */
const WIDE_CHARSET = /^(cs)?(utf-?(7|16|32)|ucs-?[24]|unicode|iso-10646)/i;

function maskingStream(mask: SecretMask): Transform {
  return new Transform({
    transform: (bytes, _, callback) => callback(null, mask.write(bytes)),
    flush: (callback) => callback(null, mask.end()),
  });
}
