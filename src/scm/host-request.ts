import { type LookupAddress, lookup } from "node:dns";
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { ScmFailure } from "./failure.ts";
import { isPublicAddress } from "./public-address.ts";
import type { ScmLimits, ScmSettings } from "./settings.ts";

/** A request to a host. */
export interface HostRequest {
  /** The host as people know it, for error messages; its API can have another name. */
  readonly host: string;
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The body, sent as JSON. */
  readonly body?: unknown;
  /** The body as JSON already, in place of `body`. */
  readonly text?: string;
  /** The trace context of the sender, as a `traceparent`. */
  readonly traceparent?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** True if a status from 400 to 499 is expected, so that the span does not count as failed. Default false. */
  readonly mayBeRefused?: boolean;
}

/** The response of a host, whatever its status. */
export interface HostResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends one request over a separate connection and reads the response. Does not use
 * fetch, which accepts no custom look-up: it would resolve the name again after its
 * addresses were checked.
 *
 * @throws ScmFailure refused, unavailable or unreadable
 * @throws the reason of `signal` when that ended it
 */
export async function sendRequest(
  req: HostRequest,
  settings: ScmSettings,
  limits: RequestLimits,
): Promise<HostResponse> {
  const timeout = AbortSignal.timeout(limits.timeoutMs);
  const signal = req.signal ? AbortSignal.any([req.signal, timeout]) : timeout;
  const { method, url, traceparent, mayBeRefused } = req;
  const traced = settings.traces?.beginRequest({ method, url, traceparent });
  try {
    const res = await openResponse(req, traced?.traceparent ?? traceparent, settings, signal);
    const text = await readBody(res, req.host, limits);
    const status = res.statusCode ?? 0;
    traced?.end({ status, mayBeRefused });
    return { status, headers: res.headers, text };
  } catch (error) {
    traced?.end({ errorType: timeout.aborted ? "timeout" : errorTypeOf(error, signal) });
    if (error instanceof ScmFailure) throw error;
    req.signal?.throwIfAborted();
    if (timeout.aborted) {
      throw new ScmFailure("unavailable", req.host, `did not answer within ${limits.timeoutMs} ms`);
    }
    throw connectionFailure(req.host, error as NodeJS.ErrnoException);
  }
}

/** Returns the code of the connection's error, such as `ECONNREFUSED`, or otherwise the kind of failure. */
function errorTypeOf(error: unknown, signal: AbortSignal): string {
  if (error instanceof ScmFailure) return error.kind;
  if (signal.aborted) return "canceled";
  return (error as NodeJS.ErrnoException).code ?? "_OTHER";
}

/** The limits of one request. */
export type RequestLimits = Pick<ScmLimits, "timeoutMs" | "responseBytes">;

/** Resolves when the headers of the response have arrived. */
function openResponse(
  req: HostRequest,
  traceparent: string | undefined,
  settings: ScmSettings,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { host, url, method } = req;
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  requireAllowedAddress(hostname, host, settings);
  const body = req.text ?? (req.body === undefined ? undefined : JSON.stringify(req.body));
  const headers = {
    accept: "application/json",
    // One of the hosts refuses requests without it.
    "user-agent": "chartroom",
    ...req.headers,
    host: url.host,
    ...(traceparent !== undefined && { traceparent }),
    ...(body !== undefined && {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    }),
  };
  const request = url.protocol === "http:" ? requestHttp : requestHttps;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        hostname,
        port: url.port,
        path: url.pathname + url.search,
        method,
        headers,
        signal,
        // A pooled connection could have been made under other settings.
        agent: false,
        lookup: checkedLookup(host, settings),
      },
      resolve,
    );
    outgoing.on("error", reject);
    // Reports a response that switches to another protocol (101), for which no other event is emitted.
    outgoing.on("close", () => reject(new ScmFailure("unreadable", host, "ended without an answer")));
    outgoing.end(body);
  });
}

async function readBody(
  res: IncomingMessage,
  host: string,
  { responseBytes }: RequestLimits,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of res as AsyncIterable<Buffer>) {
    size += chunk.length;
    // Leaving the loop destroys the response, and with it the connection.
    if (size > responseBytes) {
      throw new ScmFailure("unreadable", host, `answered more than ${responseBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function connectionFailure(host: string, cause: NodeJS.ErrnoException): ScmFailure {
  const code = cause.code ?? "no cause given";
  return /^(HPE_|ERR_SSL_|EPROTO$)/.test(code)
    ? new ScmFailure("unreadable", host, `does not speak the protocol of its port (${code})`, { cause })
    : new ScmFailure("unavailable", host, `could not be reached (${code})`, { cause });
}

/**
 * Creates a look-up of a host's name that returns its addresses only when all of
 * them are allowed. A connection that uses it goes to a checked address: there is no
 * second look-up, which could return another one.
 */
export function checkedLookup(host: string, settings: ScmSettings): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || first === undefined) {
        callback(error ?? new ScmFailure("unavailable", host, "has no address"), "");
      } else if (!areAllAllowed(addresses, settings)) {
        callback(notPublic(host), "");
      } else if (options.all) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

/**
 * Checks a host that is written as an address, for which no look-up takes place.
 *
 * @param hostname as URL returns it; IPv6 without brackets
 * @throws ScmFailure refused
 */
export function requireAllowedAddress(hostname: string, host: string, settings: ScmSettings): void {
  if (isIP(hostname) !== 0 && !isAllowed(hostname, settings)) throw notPublic(host);
}

/** Returns whether every address of a name may be reached: a connection may take any of them. */
export function areAllAllowed(addresses: readonly LookupAddress[], settings: ScmSettings): boolean {
  return addresses.every(({ address }) => isAllowed(address, settings));
}

function isAllowed(address: string, { allowPrivateAddresses }: ScmSettings): boolean {
  return allowPrivateAddresses || isPublicAddress(address);
}

function notPublic(host: string): ScmFailure {
  return new ScmFailure(
    "refused",
    host,
    "is at an address that is not public: the operator can allow private addresses",
  );
}
