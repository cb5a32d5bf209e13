import type { IncomingHttpHeaders } from "node:http";
import { ScmFailure } from "./failure.ts";
import { type HostRequest, type HostResponse, sendRequest } from "./host-request.ts";
import { failureOfResponse } from "./response-failure.ts";
import type { ScmLimits, ScmSettings } from "./settings.ts";

/** A successful response, read as JSON. */
export interface JsonResponse {
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** A client of one host's API, with a token. All methods throw ScmFailure. */
export interface HostClient {
  readonly host: string;
  /**
   * Calls the API with GET.
   * @param path below the API's root, its parts encoded
   */
  get(path: string, query: Readonly<Record<string, string>>): Promise<JsonResponse>;
  /**
   * Calls the API with a conditional GET.
   * @param etag the ETag of an earlier response; undefined for no condition
   * @returns undefined when the response has not changed
   */
  getIfChanged(
    path: string,
    query: Readonly<Record<string, string>>,
    etag: string | undefined,
  ): Promise<JsonResponse | undefined>;
  post(path: string, body: unknown): Promise<JsonResponse>;
}

export interface HostClientOptions {
  readonly host: string;
  /** The root of the API without a slash at the end. */
  readonly apiRoot: string;
  /** The token of a person, a project or an OAuth grant. */
  readonly token: string;
  /** The word before the token; `Bearer` unless the host documents another. */
  readonly scheme?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  /** The trace context of the caller, as a `traceparent`. */
  readonly traceparent: string | undefined;
  readonly settings: ScmSettings;
  readonly limits: ScmLimits;
}

export function createHostClient(options: HostClientOptions): HostClient {
  const { host, apiRoot, token, scheme = "Bearer", signal, traceparent, settings, limits } = options;
  const ownHeaders = { ...options.headers, authorization: `${scheme} ${token}` };
  const send = async (
    req: Pick<HostRequest, "method" | "url" | "body">,
    etag?: string,
  ): Promise<HostResponse> => {
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new ScmFailure("unauthorized", host, "gets no token that a header cannot carry: store it again");
    }
    const headers = etag === undefined ? ownHeaders : { ...ownHeaders, "if-none-match": etag };
    return sendFollowingRedirects({ ...req, host, headers, signal, traceparent }, settings, limits);
  };
  const read = (response: HostResponse): JsonResponse => {
    if (response.status < 200 || response.status > 299)
      throw failureOfResponse(host, response, [token], Date.now());
    return { headers: response.headers, body: json(host, response) };
  };
  const urlOf = (path: string, query: Readonly<Record<string, string>>) => {
    const url = new URL(apiRoot + path);
    url.search = new URLSearchParams(query).toString();
    return url;
  };
  return {
    host,
    get: async (path, query) => read(await send({ method: "GET", url: urlOf(path, query) })),
    async getIfChanged(path, query, etag) {
      const response = await send({ method: "GET", url: urlOf(path, query) }, etag);
      return etag !== undefined && response.status === 304 ? undefined : read(response);
    },
    post: async (path, body) => read(await send({ method: "POST", url: new URL(apiRoot + path), body })),
  };
}

function json(host: string, { headers, text }: HostResponse): unknown {
  try {
    if (/^application\/([\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "")) return JSON.parse(text);
  } catch {}
  throw new ScmFailure("unreadable", host, "answered something else than JSON");
}

/** A renamed repository needs one redirect; the others allow for redirects inside the host. */
const MAX_REDIRECTS = 3;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirects that repeat the same request; the others turn it into a GET. */
const METHOD_PRESERVING: ReadonlySet<number> = new Set([307, 308]);

/**
 * Sends a request as exchange does, and follows redirects as long as they stay at
 * the scheme, host and port of the request: the request carries a token.
 *
 * @throws ScmFailure refused for a redirect elsewhere, unreadable for one too
 *   many
 */
async function sendFollowingRedirects(
  req: HostRequest,
  settings: ScmSettings,
  limits: ScmLimits,
): Promise<HostResponse> {
  let current = req;
  for (let redirects = 0; ; redirects += 1) {
    const response = await sendRequest(current, settings, limits);
    const { location } = response.headers;
    if (!REDIRECTS.has(response.status) || location === undefined) return response;
    const url = URL.parse(location, current.url);
    if (url?.origin !== req.url.origin) {
      throw new ScmFailure("refused", req.host, "redirects to another host, which gets no request from here");
    }
    if (redirects === MAX_REDIRECTS) {
      throw new ScmFailure("unreadable", req.host, `redirects more than ${MAX_REDIRECTS} times`);
    }
    if (req.method !== "GET" && !METHOD_PRESERVING.has(response.status)) {
      throw new ScmFailure("not_found", req.host, "has moved it: use the address at which it is now");
    }
    current = { ...current, url };
  }
}
