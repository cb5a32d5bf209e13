import type { Source, Target } from "./git-source.ts";

interface Page {
  /** Of the path: the repository and what is looked at. */
  readonly pattern: RegExp;
  readonly target: (rest: string) => Target;
}

/** owner/repository; deeper groups are only known where the host marks their end with `/-/`. */
const REPOSITORY = "(/[^/]+/[^/]+)";
const GROUP = "(/.+?)";

const path = (text: string): Target => ({ kind: "path", path: text });
const commit = (hash: string): Target => ({ kind: "commit", hash });
const request =
  (namespace: string) =>
  (number: string): Target => ({
    kind: "ref",
    ref: `refs/${namespace}/${number}/head`,
    branch: `${namespace}/${number}`,
  });
const head = (): Target => ({ kind: "head" });

/** The pages of GitHub, GitLab, Gitea and Forgejo that say what to check out; the first that fits. */
const PAGES: readonly Page[] = [
  { pattern: new RegExp(`^${GROUP}/-/(?:tree|blob)/(.+)$`), target: path },
  { pattern: new RegExp(`^${GROUP}/-/commit/([0-9a-f]+)$`), target: commit },
  {
    pattern: new RegExp(`^${GROUP}/(?:-/)?merge_requests/(\\d+)(?:/.*)?$`),
    target: request("merge-requests"),
  },
  { pattern: new RegExp(`^${GROUP}/-/issues/(\\d+)$`), target: head },
  { pattern: new RegExp(`^${REPOSITORY}/(?:tree|blob)/(.+)$`), target: path },
  { pattern: new RegExp(`^${REPOSITORY}/src/(?:branch|tag)/(.+)$`), target: path },
  { pattern: new RegExp(`^${REPOSITORY}/(?:src/)?commit/([0-9a-f]+)$`), target: commit },
  { pattern: new RegExp(`^${REPOSITORY}/pulls?/(\\d+)(?:/.*)?$`), target: request("pull") },
  { pattern: new RegExp(`^${REPOSITORY}/issues/(\\d+)$`), target: head },
];

/**
 * The repository and revision behind the address of a page: that of a branch,
 * tag, file, commit, pull or merge request, or issue. Every other address is
 * taken for that of a repository itself, at its default branch.
 */
export function sourceOfPage(address: string): Source {
  const url = URL.parse(address);
  const source = { upstreamUri: "", location: "" };
  if (!url || !/^https?:$/.test(url.protocol))
    return { ...source, remoteUri: address, target: { kind: "head" } };
  const remoteUri = (repository: string) => {
    const remote = new URL(url);
    remote.pathname = repository;
    remote.search = "";
    remote.hash = "";
    return remote.href;
  };
  const pathname = url.pathname.replace(/\/+$/, "");
  for (const { pattern, target } of PAGES) {
    const [, repository, rest] = pattern.exec(pathname) ?? [];
    if (repository === undefined || rest === undefined) continue;
    return { ...source, remoteUri: remoteUri(repository), target: target(decoded(rest)) };
  }
  return { ...source, remoteUri: remoteUri(pathname), target: { kind: "head" } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
