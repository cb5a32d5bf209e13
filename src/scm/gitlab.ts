import { type HostApi, type HostPullRequest, hasNextLink, PAGE_SIZE } from "./host-api.ts";
import type { HostClient } from "./host-client.ts";
import {
  type Fields,
  linkIn,
  numberIn,
  readFields,
  readFieldsList,
  repositoryIn,
} from "./response-fields.ts";

/** The host treats a title that begins with one of these as a draft; it has no field for it. */
const DRAFT_TITLE = /^(\[draft\]|\(draft\)|draft:)/i;

export function gitLabRoot(origin: string): string {
  return `${origin}/api/v4`;
}

export function createGitLabApi(client: HostClient): HostApi {
  const { host } = client;
  const mergeRequests = (repository: string) => `/projects/${encodeURIComponent(repository)}/merge_requests`;
  return {
    pageSize: PAGE_SIZE,

    async findPullRequests(repository, branch) {
      const { body } = await client.get(mergeRequests(repository), {
        state: "opened",
        source_branch: branch,
        per_page: String(PAGE_SIZE),
      });
      return (
        readFieldsList(host, body)
          // A fork's branch can have the same name.
          .filter((each) => each.source_project_id === each.target_project_id)
          .map((each) => mergeRequest(host, each))
      );
    },

    async createPullRequest(repository, { title, description, branch, base, draft }) {
      const { body } = await client.post(mergeRequests(repository), {
        title: draft && !DRAFT_TITLE.test(title) ? `Draft: ${title}` : title,
        description,
        source_branch: branch,
        target_branch: base,
      });
      return mergeRequest(host, readFields(body));
    },

    async searchRepositories(query, page) {
      const { body, headers } = await client.get("/projects", {
        search: query,
        // So that a group can be named: its path is searched, too.
        search_namespaces: "true",
        // By id, as the default order moves with every activity.
        order_by: "id",
        sort: "asc",
        simple: "true",
        per_page: String(PAGE_SIZE),
        page: String(page),
      });
      const total = headers["x-total"];
      return {
        repositories: readFieldsList(host, body).map((each) =>
          repositoryIn(host, each, "path_with_namespace"),
        ),
        hasNext: hasNextLink(headers.link),
        // The header is absent past 10,000.
        totalCount: /^\d+$/.test(String(total)) ? Number(total) : undefined,
        isComplete: true,
      };
    },
  };
}

function mergeRequest(host: string, from: Fields): HostPullRequest {
  return {
    url: linkIn(host, from, "web_url"),
    number: numberIn(host, from, "iid"),
    base: String(from.target_branch),
  };
}
