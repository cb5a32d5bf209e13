import { type ChecksState, readPullRequestFacts } from "./followed-pull-request.ts";
import { isOwn, pullRequest, twoParts } from "./github.ts";
import { type HostApi, type HostPullRequest, hasNextLink } from "./host-api.ts";
import type { HostClient } from "./host-client.ts";
import { RememberingReader } from "./host-memory.ts";
import { readFields, readFieldsList, repositoryIn } from "./response-fields.ts";

/** The host's default maximum; its operator can configure another. */
const PAGE_SIZE = 50;
/** Maximum number of pages of open pull requests, newest first, that are read to find those of one branch. */
const MAX_PULL_REQUEST_PAGES = 20;
/** The host treats a title that begins with one of these as a draft; it has no field for it. */
const DRAFT_TITLE = /^(?:wip:|\[wip\])/i;

/** Returns the root of the API that Gitea and Forgejo share. */
export function giteaRoot(origin: string): string {
  return `${origin}/api/v1`;
}

export function createGiteaApi(client: HostClient): HostApi {
  const { host } = client;
  const pulls = (repository: string) => `/repos/${twoParts(host, repository)}/pulls`;
  return {
    pageSize: PAGE_SIZE,

    async findPullRequests(repository, branch) {
      // The host has no filter by branch.
      const found: HostPullRequest[] = [];
      for (let page = 1; page <= MAX_PULL_REQUEST_PAGES; page += 1) {
        const { body, headers } = await client.get(pulls(repository), {
          state: "open",
          sort: "recentupdate",
          page: String(page),
          limit: String(PAGE_SIZE),
        });
        const list = readFieldsList(host, body);
        for (const each of list) {
          if (isOwn(each) && readFields(each.head).ref === branch) found.push(pullRequest(host, each));
        }
        if (found.length > 0 || list.length === 0 || !hasNextLink(headers.link)) break;
      }
      return found;
    },

    async createPullRequest(repository, { title, description, branch, base, draft }) {
      const { body } = await client.post(pulls(repository), {
        title: draft && !DRAFT_TITLE.test(title) ? `WIP: ${title}` : title,
        body: description,
        head: branch,
        base,
      });
      return pullRequest(host, readFields(body));
    },

    async readPullRequest(repository, number, before) {
      const reader = new RememberingReader(client, before);
      const facts = await reader.read(`${pulls(repository)}/${number}`, {}, (body) =>
        readPullRequestFacts(host, body),
      );
      if (facts.state !== "open")
        return { pullRequest: { ...facts, checks: undefined }, memory: reader.memory };
      const path = `/repos/${twoParts(host, repository)}/commits/${facts.headSha}/status`;
      const checks = await reader.read(path, {}, commitStatus);
      return { pullRequest: { ...facts, checks }, memory: reader.memory };
    },

    async searchRepositories(query, page) {
      const { body, headers } = await client.get("/repos/search", {
        q: query,
        sort: "id",
        order: "asc",
        page: String(page),
        limit: String(PAGE_SIZE),
      });
      const total = headers["x-total-count"];
      return {
        repositories: readFieldsList(host, readFields(body).data).map((each) =>
          repositoryIn(host, each, "full_name"),
        ),
        hasNext: hasNextLink(headers.link),
        totalCount: /^\d+$/.test(String(total)) ? Number(total) : undefined,
        isComplete: true,
      };
    },
  };
}

/** The host's combined states of all reported statuses; the state is empty when none was reported. */
const CHECKS: Readonly<Record<string, ChecksState>> = {
  success: "passed",
  warning: "passed",
  skipped: "passed",
  pending: "pending",
  failure: "failed",
  error: "failed",
};

function commitStatus(body: unknown): ChecksState {
  const { state, total_count } = readFields(body);
  return total_count === 0 ? "none" : (CHECKS[String(state)] ?? "none");
}
