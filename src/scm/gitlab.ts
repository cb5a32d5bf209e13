import { ScmFailure } from "./failure.ts";
import { branchIn, type ChecksState, commitIn, titleIn } from "./followed-pull-request.ts";
import { type HostApi, type HostPullRequest, hasNextLink, PAGE_SIZE } from "./host-api.ts";
import type { HostClient } from "./host-client.ts";
import { RememberingReader } from "./host-memory.ts";
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

    async readPullRequest(repository, number, before) {
      const reader = new RememberingReader(client, before);
      const path = `${mergeRequests(repository)}/${number}`;
      const read = await reader.read(path, {}, (body) => followedMergeRequest(host, readFields(body)));
      const checks = read.state === "open" ? read.checks : undefined;
      return { pullRequest: { ...read, checks }, memory: reader.memory };
    },

    async searchRepositories(query, page) {
      const { body, headers } = await client.get("/projects", {
        search: query,
        // Also searches the paths of groups, so that a query can name a group.
        search_namespaces: "true",
        // Ordered by id, since the default order changes with every activity.
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
        // The header is absent for more than 10,000 results.
        totalCount: /^\d+$/.test(String(total)) ? Number(total) : undefined,
        isComplete: true,
      };
    },
  };
}

/** A merge request is locked while it is being merged, and open if the merge fails. */
const STATES = { opened: "open", locked: "open", closed: "closed", merged: "merged" } as const;

/** States of a pipeline that has ended; all others are pending, including one that waits for a manual action. */
const ENDED_PIPELINES: Readonly<Record<string, ChecksState>> = {
  success: "passed",
  skipped: "passed",
  failed: "failed",
  canceled: "failed",
};

function followedMergeRequest(host: string, from: Fields) {
  const state = STATES[String(from.state) as keyof typeof STATES];
  if (state === undefined) {
    throw new ScmFailure("unreadable", host, "answered without the state of the merge request");
  }
  const { status } = readFields(from.head_pipeline);
  const checks: ChecksState =
    status === undefined || status === null ? "none" : (ENDED_PIPELINES[String(status)] ?? "pending");
  return {
    state,
    title: titleIn(from, "title"),
    draft: from.draft === true,
    branch: branchIn(host, from, "source_branch"),
    headSha: commitIn(host, from, "sha"),
    base: branchIn(host, from, "target_branch"),
    checks,
  };
}

function mergeRequest(host: string, from: Fields): HostPullRequest {
  return {
    url: linkIn(host, from, "web_url"),
    number: numberIn(host, from, "iid"),
    base: String(from.target_branch),
  };
}
