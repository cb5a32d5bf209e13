import { ScmFailure } from "./failure.ts";
import { type ChecksState, combineChecks, readPullRequestFacts } from "./followed-pull-request.ts";
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

/** The search returns the first 1,000 results and refuses a page after them. */
const LAST_PAGE = 10;

/** The headers that pin the responses to one version of the API. */
export const GITHUB_HEADERS = {
  accept: "application/vnd.github+json",
  "x-github-api-version": "2022-11-28",
};

/** Returns the root of the API: a separate host for the public one, a path of the host elsewhere. */
export function gitHubRoot(origin: string): string {
  return origin === "https://github.com" ? "https://api.github.com" : `${origin}/api/v3`;
}

export function createGitHubApi(client: HostClient): HostApi {
  const { host } = client;
  return {
    pageSize: PAGE_SIZE,

    async findPullRequests(repository, branch) {
      const { body } = await client.get(`/repos/${twoParts(host, repository)}/pulls`, {
        state: "open",
        head: `${repository.split("/")[0]}:${branch}`,
        per_page: String(PAGE_SIZE),
      });
      // The host ignores a head filter that it cannot parse, so each result is checked again.
      return readFieldsList(host, body)
        .filter((each) => isOwn(each) && readFields(each.head).ref === branch)
        .map((each) => pullRequest(host, each));
    },

    async createPullRequest(repository, { title, description, branch, base, draft }) {
      const request = { title, body: description, head: branch, base, draft };
      const { body } = await client.post(`/repos/${twoParts(host, repository)}/pulls`, request);
      return pullRequest(host, readFields(body));
    },

    async readPullRequest(repository, number, before) {
      const reader = new RememberingReader(client, before);
      const root = `/repos/${twoParts(host, repository)}`;
      const facts = await reader.read(`${root}/pulls/${number}`, {}, (body) =>
        readPullRequestFacts(host, body),
      );
      if (facts.state !== "open")
        return { pullRequest: { ...facts, checks: undefined }, memory: reader.memory };
      // Check runs and commit statuses are two separate APIs for reporting checks.
      const commit = `${root}/commits/${facts.headSha}`;
      const query = { per_page: String(PAGE_SIZE) };
      const runs = await reader.read(`${commit}/check-runs`, query, (body) => checkRuns(host, body));
      const status = await reader.read(`${commit}/status`, query, (body) => commitStatus(host, body));
      return { pullRequest: { ...facts, checks: combineChecks([runs, status]) }, memory: reader.memory };
    },

    async searchRepositories(query, page) {
      const { body, headers } = await client.get("/search/repositories", {
        q: query,
        per_page: String(PAGE_SIZE),
        page: String(page),
      });
      const found = readFields(body);
      return {
        repositories: readFieldsList(host, found.items).map((each) => repositoryIn(host, each, "full_name")),
        hasNext: page < LAST_PAGE && hasNextLink(headers.link),
        totalCount: numberIn(host, found, "total_count"),
        isComplete: found.incomplete_results !== true,
      };
    },
  };
}

/** Conclusions of a check that has not failed; all others count as failed. */
const GOOD_CONCLUSIONS: ReadonlySet<unknown> = new Set(["success", "neutral", "skipped"]);

/** Returns the state of the newest 100 check runs, one per name. */
function checkRuns(host: string, body: unknown): ChecksState {
  return combineChecks(
    readFieldsList(host, readFields(body).check_runs).map(({ status, conclusion }) => {
      if (status !== "completed") return "pending";
      return GOOD_CONCLUSIONS.has(conclusion) ? "passed" : "failed";
    }),
  );
}

/** Returns the host's combined state of commit statuses; without any status the host reports "pending". */
function commitStatus(host: string, body: unknown): ChecksState {
  const from = readFields(body);
  if (numberIn(host, from, "total_count") === 0) return "none";
  if (from.state === "success") return "passed";
  return from.state === "pending" ? "pending" : "failed";
}

/** Returns whether the branch of a pull request, in the form of GitHub and Gitea, is one of the repository itself; a fork's can have the same name. */
export function isOwn({ head, base }: Fields): boolean {
  const id = readFields(readFields(head).repo).id;
  return id !== undefined && id === readFields(readFields(base).repo).id;
}

/** Reads a pull request in the form of GitHub and Gitea. @throws ScmFailure */
export function pullRequest(host: string, from: Fields): HostPullRequest {
  return {
    url: linkIn(host, from, "html_url"),
    number: numberIn(host, from, "number"),
    base: String(readFields(from.base).ref),
  };
}

/** Returns a path of the form owner/name. @throws ScmFailure not_found for another form */
export function twoParts(host: string, repository: string): string {
  if (repository.split("/").length === 2) return repository;
  throw new ScmFailure("not_found", host, `has repositories of the form owner/name, not ${repository}`);
}
