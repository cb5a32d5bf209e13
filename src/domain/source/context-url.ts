/** The revision to check out. */
export type Target =
  /** The remote's default branch. */
  | { readonly kind: "head" }
  | { readonly kind: "commit"; readonly hash: string }
  | { readonly kind: "branch"; readonly name: string }
  /** A new branch from the default one. */
  | { readonly kind: "local-branch"; readonly name: string }
  | { readonly kind: "tag"; readonly name: string }
  /** The branch, tag or commit that a path begins with (`isTag`: only a tag); names may contain slashes. */
  | { readonly kind: "path"; readonly path: string; readonly isTag?: true }
  /** A ref of the remote that is not a branch, as a new branch. */
  | { readonly kind: "ref"; readonly ref: string; readonly branch: string };

/** The repository behind a page, and the revision that the page shows. */
export interface PageSource {
  readonly remoteUri: string;
  readonly target: Target;
}

interface Page {
  /** Pattern of the path: the repository and the revision. */
  readonly pattern: RegExp;
  readonly target: (rest: string) => Target;
}

/**
 * owner/repository; deeper groups are only recognised where the host marks their end with `/-/`.
 */
const REPOSITORY = "(/[^/]+/[^/]+)";
const GROUP = "(/.+?)";

const path = (text: string): Target => ({ kind: "path", path: text });
const tagPath = (text: string): Target => ({ kind: "path", path: text, isTag: true });
const commit = (hash: string): Target => ({ kind: "commit", hash: hash.toLowerCase() });
const request =
  (namespace: string) =>
  (number: string): Target => ({
    kind: "ref",
    ref: `refs/${namespace}/${number}/head`,
    branch: `${namespace}/${number}`,
  });
const tag = (name: string): Target => ({ kind: "tag", name });
const head = (): Target => ({ kind: "head" });

/** The pages of GitHub, GitLab, Gitea and Forgejo that name a revision; the first match counts. */
const PAGES: readonly Page[] = [
  { pattern: new RegExp(`^${GROUP}/-/(?:tree|blob)/(.+)$`), target: path },
  { pattern: new RegExp(`^${GROUP}/-/commit/([0-9a-fA-F]+)$`), target: commit },
  {
    pattern: new RegExp(`^${GROUP}/(?:-/)?merge_requests/(\\d+)(?:/.*)?$`),
    target: request("merge-requests"),
  },
  { pattern: new RegExp(`^${GROUP}/-/(?:tags|releases)/(.+)$`), target: tag },
  { pattern: new RegExp(`^${GROUP}/-/issues/(\\d+)$`), target: head },
  { pattern: new RegExp(`^${REPOSITORY}/(?:tree|blob)/(.+)$`), target: path },
  { pattern: new RegExp(`^${REPOSITORY}/src/branch/(.+)$`), target: path },
  { pattern: new RegExp(`^${REPOSITORY}/src/tag/([^/]+)$`), target: tag },
  { pattern: new RegExp(`^${REPOSITORY}/src/tag/(.+)$`), target: tagPath },
  { pattern: new RegExp(`^${REPOSITORY}/commit/([0-9a-fA-F]+)$`), target: commit },
  { pattern: new RegExp(`^${REPOSITORY}/src/commit/([0-9a-fA-F]+)(?:/.*)?$`), target: commit },
  { pattern: new RegExp(`^${REPOSITORY}/pulls?/(\\d+)(?:/.*)?$`), target: request("pull") },
  { pattern: new RegExp(`^${REPOSITORY}/releases/tag/(.+)$`), target: tag },
  { pattern: new RegExp(`^${REPOSITORY}/issues/(\\d+)$`), target: head },
];

/**
 * Returns the repository and revision behind the address of a page: that of a branch, tag, file,
 * commit, pull or merge request, or issue. Every other address is read as that of a repository
 * itself, at its default branch.
 */
export function sourceOfPage(address: string): PageSource {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) return { remoteUri: address, target: { kind: "head" } };
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
    return { remoteUri: remoteUri(repository), target: target(decoded(rest)) };
  }
  return { remoteUri: remoteUri(pathname), target: { kind: "head" } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
