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
  inTurns,
  type PassedAnswer,
  rejectRequest,
} from "./forward-request.ts";

/** A secret that is put into requests. */
export interface ProxiedSecret {
  readonly secretId: string;
  readonly value: string;
  readonly targetHosts: readonly string[];
  readonly header: string;
}

/** Puts secrets into requests of a piece of work to their hosts. The work has the authority's certificate alone. */
export interface CredentialProxy {
  /** The certificate by which the work accepts this proxy in the place of these hosts, in PEM. */
  readonly certificate: string;
  /** Returns whether a connection to a target must go through here. */
  takes(target: EgressTarget): boolean;
  /** Serves a connection that the work takes for one to a target that this takes. */
  serve(client: Socket, target: EgressTarget, passage: EgressPassage): void;
}

/**
 * Returns the proxy of the secrets of a piece of work.
 *
 * @param trusted the authorities by which hosts are verified
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
  // Hosts may write what they have got in small letters.
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

/** Returns the authorities by which hosts are verified: those of Node and of the machine, and more. @param more certificates in PEM */
export function trustedAuthorities(more: readonly string[] = []): SecureContext {
  const ca = new Set([...getCACertificates("default"), ...getCACertificates("system"), ...more]);
  return createSecureContext({ ca: [...ca], minVersion: "TLSv1.2" });
}

/** Returns what the work is to trust: the authorities of the machine and that of its proxy, in PEM. */
export function trustedByWork({ certificate }: Pick<CredentialProxy, "certificate">): string {
  // A machine has each in several files.
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

/** Returns a server, which listens nowhere, that answers in the place of a host. */
function createHostServer(authority: CredentialAuthority, served: ServedHost): Server {
  const { target } = served;
  const server = createServer(
    {
      requestTimeout: 0,
      // HTTP/2 is not offered: its clients use this, or end.
      ALPNProtocols: ["http/1.1"],
      SNICallback(name, callback) {
        if (parseHost(name)?.host !== target.host) return callback(new Error("another host"));
        authority.contextFor(target.host).then((context) => callback(null, context), callback);
      },
    },
    inTurns((req, res) => passOn(req, res, served)),
  );
  // Without a name there is no certificate for it either.
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

/** Headers of requests by which an answer would be a part of one, or encoded, so that values in it were not found. */
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
      // Of several for one header, the first counts.
      replaced.indexOf(secret.header.toLowerCase()) === index ? headerOf(req, secret) : [],
    ),
    ...framing(req),
  ];
  // Whatever the runner's variables say of unauthorized ones.
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

/** Returns whether a request names the host of its connection, once. */
function isMeant({ rawHeaders }: IncomingMessage, { host, port }: EgressTarget): boolean {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const index = names.indexOf("host");
  if (index < 0 || names.lastIndexOf("host") !== index) return false;
  const named = parseHost(rawHeaders[2 * index + 1] ?? "");
  return named?.host === host && (named.port ?? 443) === port;
}

/** Returns the header with a secret, as its name and value: the whole of it, or what the work sends around the placeholder. */
function headerOf(req: IncomingMessage, { secretId, header, value }: ProxiedSecret): readonly string[] {
  const sent = req.headers[header.toLowerCase()];
  const placeholder = placeholderOf(secretId);
  const holds = typeof sent === "string" && sent.includes(placeholder);
  return [header, holds ? sent.replaceAll(placeholder, () => value) : value];
}

/** Returns an answer without the values of secrets, or why the work gets none. */
function maskedAnswer(received: IncomingMessage, method: string, masked: Secrets): PassedAnswer | string {
  const { statusCode = 0, statusMessage = "", rawHeaders } = received;
  const hasBody = method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  const coding = codingOf(received);
  if (hasBody && coding !== "")
    return `the host's answer is encoded (${masked.maskText(coding)}), though it was asked for one that is not: secrets in it would not be found`;
  return {
    statusMessage: masked.maskText(statusMessage),
    // The length is another one where something is masked.
    headers: endToEnd(rawHeaders, ...(hasBody ? ["content-length"] : [])).map((text) =>
      masked.maskText(text),
    ),
    body: maskingStream(masked.stream()),
  };
}

/** Returns how the body of an answer is encoded, also on the way alone; empty where ASCII in it is found as it is. */
function codingOf({ headers }: IncomingMessage): string {
  const { "content-encoding": content = "", "transfer-encoding": transfer = "" } = headers;
  const codings = `${content},${transfer}`.split(",").map((each) => each.trim());
  const [, charset = ""] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers["content-type"] ?? "") ?? [];
  const wide = WIDE_CHARSET.test(charset) ? [charset] : [];
  return [...codings.filter((each) => !/^(identity|chunked)?$/i.test(each)), ...wide].join(", ");
}

/** Encodings of text in which ASCII is not one byte a character, or not the same bytes. */
const WIDE_CHARSET = /^(cs)?(utf-?(7|16|32)|ucs-?[24]|unicode|iso-10646)/i;

function maskingStream(mask: SecretMask): Transform {
  return new Transform({
    transform: (bytes, _, callback) => callback(null, mask.write(bytes)),
    flush: (callback) => callback(null, mask.end()),
  });
}
