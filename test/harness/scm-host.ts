import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { handleGitRequest, isGitRequest } from "./git-over-http.ts";
import { handleGiteaRequest } from "./scm-gitea.ts";
import { handleGitHubRequest } from "./scm-github.ts";
import { handleGitLabRequest } from "./scm-gitlab.ts";
import { type AddedPullRequest, type HostedPullRequest, ScmState } from "./scm-state.ts";

export type { HostedPullRequest } from "./scm-state.ts";

/** A request as it arrived. */
export interface ReceivedRequest {
  readonly method: string;
  /** With the query, as sent. */
  readonly target: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A failure in place of the response. */
export type Fault =
  /** This response; a text body is sent as HTML, any other as JSON. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** JSON of so many bytes. */
  | { readonly bytes: number }
  /** No response, until the client gives up. */
  | "hang"
  /** The request is carried out without a response, until the client gives up. */
  | "unanswered"
  /** Waits until this resolves, then responds, unless the client has disconnected. */
  | { readonly until: Promise<unknown> }
  /** A success whose body stops half-way. */
  | "stall"
  /** The connection is reset. */
  | "reset";

export interface FaultOptions {
  /**
   * Selects the requests that fail; by default the next ones to the API. Requests of git have no
   * body here.
   */
  readonly when?: (req: ReceivedRequest) => boolean;
  /** How many of them fail; 1 by default. */
  readonly times?: number;
}

/**
 * A source-control host in this process: the calls of one host's API that the service makes, over
 * real HTTP, and git access to its repositories.
 */
export interface ScmHost {
  readonly kind: ScmHostOptions["kind"];
  /** Host and port, as host tokens and selectors name it. */
  readonly host: string;
  /** Without a trailing slash. */
  readonly url: string;
  /** The only token that it accepts, as a bearer, after `token`, as PRIVATE-TOKEN and as git's password. */
  readonly token: string;
  /** Every request to the API, in order. */
  readonly requests: readonly ReceivedRequest[];
  /**
   * Adds a repository and returns its clone URL.
   *
   * @param path as in `owner/name`
   * @param folder a bare repository on disk, served over git's smart HTTP; pull requests then need
   * branches that exist in it
   */
  addRepository(path: string, folder?: string): string;
  /** Renames a repository; requests for the old path are redirected, as at GitHub. */
  renameRepository(from: string, to: string): void;
  /** Returns all opened pull requests, in order. */
  pullRequests(): readonly HostedPullRequest[];
  /** Adds a pull request that somebody else opened. */
  addPullRequest(pullRequest: AddedPullRequest): HostedPullRequest;
  closePullRequest(repository: string, number: number): void;
  changePullRequest: ScmState["changePullRequest"];
  fail(fault: Fault, options?: FaultOptions): void;
  stop(): Promise<void>;
}

export interface ScmHostOptions {
  /** The API that it serves; a `plain` host serves only git. */
  readonly kind: "github" | "gitlab" | "gitea" | "plain";
  readonly token?: string;
}

/** Starts a host on a free port of 127.0.0.1. */
export async function startScmHost(options: ScmHostOptions): Promise<ScmHost> {
  const { kind, token = "host-token-of-tests" } = options;
  const requests: ReceivedRequest[] = [];
  const faults: { fault: Fault; when: (req: ReceivedRequest) => boolean; left: number }[] = [];
  const server = createServer((req, res) => {
    answer(req, res).catch((error) => res.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `http://${host}`;
  const state = new ScmState(url, token);

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const isGit = isGitRequest(req.url ?? "");
    const { method = "", url: target = "", headers } = req;
    // The body of a git request is piped to git as it arrives.
    const received = { method, target, headers, body: isGit ? "" : await text(req) };
    if (!isGit) requests.push(received);
    const fault = faults.find(({ when, left }) => left > 0 && when(received));
    if (!fault) return serve(received, req, res);
    fault.left -= 1;
    if (fault.fault === "unanswered") return serve(received, req, new ServerResponse(req));
    if (typeof fault.fault === "string" || !("until" in fault.fault)) return commit(fault.fault, res);
    await fault.fault.until;
    if (!req.socket.destroyed) await serve(received, req, res);
  }

  async function serve(seen: ReceivedRequest, req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (isGitRequest(seen.target)) handleGitRequest(state, token, req, res);
    else if (kind === "github") await handleGitHubRequest(state, seen, res);
    else if (kind === "gitlab") await handleGitLabRequest(state, seen, res);
    else if (kind === "gitea") await handleGiteaRequest(state, seen, res);
    else sendHtml(res, 404, "<h1>nothing here</h1>");
  }

  return {
    kind,
    host,
    url,
    token,
    requests,
    addRepository: (path, folder) => state.addRepository(path, folder).cloneUrl,
    renameRepository: (from, to) => state.renameRepository(from, to),
    pullRequests: () => state.pullRequests,
    addPullRequest: (pullRequest) => state.addPullRequest(pullRequest),
    closePullRequest: (repository, number) =>
      state.changePullRequest(repository, number, { state: "closed" }),
    changePullRequest: (...change) => state.changePullRequest(...change),
    fail(fault, { when = isForApi, times = 1 }: FaultOptions = {}) {
      faults.push({ fault, when, left: times });
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const isForApi = ({ target }: ReceivedRequest) => !isGitRequest(target);

async function text(req: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of req.setEncoding("utf8")) body += chunk;
  return body;
}

function commit(fault: Exclude<Fault, "unanswered" | { until: unknown }>, res: ServerResponse): void {
  if (fault === "hang") return;
  if (fault === "stall") {
    res.writeHead(200, { "content-type": "application/json" }).write("[");
  } else if (fault === "reset") {
    res.destroy();
  } else if ("bytes" in fault) {
    res.writeHead(200, { "content-type": "application/json" }).end(`"${"x".repeat(fault.bytes - 2)}"`);
  } else {
    const isText = typeof fault.body === "string";
    res.writeHead(fault.status, {
      "content-type": isText ? "text/html" : "application/json; charset=utf-8",
      ...fault.headers,
    });
    res.end(isText ? fault.body : JSON.stringify(fault.body ?? {}));
  }
}

function sendHtml(res: ServerResponse, status: number, html: string): void {
  res.writeHead(status, { "content-type": "text/html" }).end(html);
}
