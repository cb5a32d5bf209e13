import type { ServerResponse } from "node:http";
import type { ReceivedRequest } from "./scm-host.ts";
import {
  type HostedPullRequest,
  type HostedRepository,
  hasBranch,
  headShaOf,
  pageOf,
  type ScmState,
  sendConditionally,
  sendJson,
} from "./scm-state.ts";

/** Serves GitLab's REST API, below /api/v4. */
export async function handleGitLabRequest(
  state: ScmState,
  req: ReceivedRequest,
  res: ServerResponse,
): Promise<void> {
  const url = new URL(req.target, state.url);
  const send = (status: number, body: unknown, headers = {}) => sendJson(res, status, body, headers);
  if (!url.pathname.startsWith("/api/v4/")) return send(404, { error: "404 Not Found" });
  if (!state.isAuthorized(req.headers)) return send(401, { message: "401 Unauthorized" });
  if (url.pathname === "/api/v4/version") return send(200, { version: "18.1.0", revision: "0000000" });
  if (url.pathname === "/api/v4/projects") return search(state, url, send);

  const one = /^\/api\/v4\/projects\/([^/]+)\/merge_requests\/(\d+)$/.exec(url.pathname);
  if (one) {
    const found = state.repository(decodeURIComponent(one[1] ?? ""));
    const pullRequest = state.pullRequests.find(
      (each) => each.repository === found?.path && each.number === Number(one[2]),
    );
    if (!found || !pullRequest) return send(404, { message: "404 Not found" });
    return sendConditionally(res, req.headers, {
      ...shown(pullRequest, found),
      sha: headShaOf(pullRequest),
      head_pipeline: pipelineOf(pullRequest),
    });
  }

  const id = /^\/api\/v4\/projects\/([^/]+)\/merge_requests$/.exec(url.pathname)?.[1] ?? "";
  const repository = state.repository(decodeURIComponent(id));
  if (!repository) return send(404, { message: "404 Project Not Found" });
  if (req.method === "GET") return list(state, repository, url, send);
  if (req.method === "POST") return open(state, repository, req, send);
  return send(405, { message: "405 Method Not Allowed" });
}

type Send = (status: number, body: unknown, headers?: object) => void;

function pipelineOf({ checks }: HostedPullRequest) {
  const states = Object.values(checks);
  if (states.length === 0) return null;
  if (states.includes("failure")) return { id: 1, status: "failed" };
  return { id: 1, status: states.includes("pending") ? "running" : "success" };
}

function search(state: ScmState, url: URL, send: Send): void {
  const text = (url.searchParams.get("search") ?? "").toLowerCase();
  const withGroups = url.searchParams.get("search_namespaces") === "true";
  const found = state.repositories.filter(({ path }) =>
    (withGroups ? path : (path.split("/").at(-1) ?? "")).toLowerCase().includes(text),
  );
  // GitLab's default order is by activity, which this host does not record.
  if (url.searchParams.get("order_by") !== "id" || url.searchParams.get("sort") !== "asc") found.reverse();
  const { items, headers } = pageOf(found, url);
  send(
    200,
    items.map(({ id, path, cloneUrl }) => ({ id, path_with_namespace: path, http_url_to_repo: cloneUrl })),
    { ...headers, ...(found.length <= 10_000 && { "x-total": String(found.length) }) },
  );
}

function list(state: ScmState, repository: HostedRepository, url: URL, send: Send): void {
  const branch = url.searchParams.get("source_branch");
  const isOpened = url.searchParams.get("state") === "opened";
  const found = state.pullRequests.filter(
    (each) =>
      each.repository === repository.path &&
      (!isOpened || each.state === "open") &&
      (branch === null || each.branch === branch),
  );
  const { items, headers } = pageOf(found, url);
  send(
    200,
    items.map((each) => shown(each, repository)),
    headers,
  );
}

async function open(
  state: ScmState,
  repository: HostedRepository,
  req: ReceivedRequest,
  send: Send,
): Promise<void> {
  const { title, description, source_branch: branch, target_branch: base } = JSON.parse(req.body);
  if (title.length > 255)
    return send(400, { message: { title: ["is too long (maximum is 255 characters)"] } });
  if (!(await hasBranch(repository, branch))) {
    return send(400, { message: { source_branch: ["does not exist"] } });
  }
  const present = state.openOf(repository.path, branch).find((each) => each.base === base);
  if (present && !present.isFromFork) {
    const message = `Another open merge request already exists for this source branch: !${present.number}`;
    return send(409, { message: [message] });
  }
  const added = {
    repository: repository.path,
    title,
    description,
    branch,
    base,
    draft: title.startsWith("Draft:"),
  };
  send(201, shown(state.addPullRequest(added, "-/merge_requests"), repository));
}

function shown(pullRequest: HostedPullRequest, { id }: HostedRepository) {
  const { number, url, title, description, branch, base, draft, isFromFork, state } = pullRequest;
  return {
    iid: number,
    web_url: url,
    state: state === "open" ? "opened" : state,
    title,
    description,
    draft,
    source_branch: branch,
    target_branch: base,
    source_project_id: isFromFork ? 1_000_000 + id : id,
    target_project_id: id,
  };
}
