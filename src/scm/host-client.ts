import type { IncomingHttpHeaders } from "node:http";
import type { HostAnswer, HostRequest } from "./exchange.ts";
import { ScmFailure } from "./failure.ts";
import { exchangeFollowing } from "./redirect.ts";
import { failureOfResponse } from "./response-failure.ts";
import type { ScmLimits, ScmSettings } from "./settings.ts";

/** A successful response, read as JSON. */
export interface JsonAnswer {
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
  get(path: string, query: Readonly<Record<string, string>>): Promise<JsonAnswer>;
  post(path: string, body: unknown): Promise<JsonAnswer>;
}

export interface HostClientOptions {
  readonly host: string;
  /** The root of the API without a slash at the end. */
  readonly apiRoot: string;
  /** The token of a person, a project or an OAuth grant: both hosts accept all of them as a bearer token. */
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly settings: ScmSettings;
  readonly limits: ScmLimits;
}

export function hostClient(options: HostClientOptions): HostClient {
  const { host, apiRoot, token, signal, settings, limits } = options;
  const headers = { ...options.headers, authorization: `Bearer ${token}` };
  const call = async (req: Pick<HostRequest, "method" | "url" | "body">): Promise<JsonAnswer> => {
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new ScmFailure("unauthorized", host, "gets no token that a header cannot carry: store it anew");
    }
    const answer = await exchangeFollowing({ ...req, host, headers, signal }, settings, limits);
    if (answer.status < 200 || answer.status > 299)
      throw failureOfResponse(host, answer, [token], Date.now());
    return { headers: answer.headers, body: json(host, answer) };
  };
  return {
    host,
    get(path, query) {
      const url = new URL(apiRoot + path);
      url.search = new URLSearchParams(query).toString();
      return call({ method: "GET", url });
    },
    post: (path, body) => call({ method: "POST", url: new URL(apiRoot + path), body }),
  };
}

function json(host: string, { headers, text }: HostAnswer): unknown {
  try {
    if (/^application\/([\w.-]+\+)?json\b/i.test(headers["content-type"] ?? "")) return JSON.parse(text);
  } catch {}
  throw new ScmFailure("unreadable", host, "answered something else than JSON");
}
