import { ScmFailure } from "./failure.ts";
import { giteaRoot } from "./gitea.ts";
import { gitHubRoot } from "./github.ts";
import { gitLabRoot } from "./gitlab.ts";
import type { HostResponse } from "./host-request.ts";
import { failureOfResponse } from "./response-failure.ts";
import { readFields } from "./response-fields.ts";

/** The API of a host, which Forgejo shares with Gitea; `plain` for unknown products. */
export type HostKind = "github" | "gitlab" | "gitea" | "plain";

/** The names of products in names of hosts, and the public host that has no such name. */
const NAMES: readonly (readonly [HostKind, RegExp])[] = [
  ["github", /github/],
  ["gitlab", /gitlab/],
  ["gitea", /gitea|forgejo|^codeberg\.org$/],
];

/** Returns the kind that a host's name indicates; undefined when it indicates none, or several. */
export function hostKindByName(host: string): HostKind | undefined {
  const kinds = NAMES.filter(([, pattern]) => pattern.test(host)).map(([kind]) => kind);
  return kinds.length === 1 ? kinds[0] : undefined;
}

/**
 * Detects the kind of a host from its responses. The requests carry no token, since
 * the host is not known yet; all kinds can be identified by how they refuse them.
 *
 * @param get returns the response whatever its status
 * @throws ScmFailure when the host cannot be asked now
 */
export async function detectHostKind(
  host: string,
  origin: string,
  get: (url: string) => Promise<HostResponse>,
): Promise<HostKind> {
  const probes = [
    { kind: "gitlab", url: `${gitLabRoot(origin)}/version`, isIt: isGitLab },
    { kind: "github", url: `${gitHubRoot(origin)}/meta`, isIt: isGitHub },
    // Not its version: other products also have one at that path.
    { kind: "gitea", url: `${giteaRoot(origin)}/settings/api`, isIt: isGitea },
  ] as const;
  for (const { kind, url, isIt } of probes) {
    const response = await get(url).catch(plainIfUnreadable);
    if (response === undefined) continue;
    if (isIt(response)) return kind;
    const failure = failureOfResponse(host, response, [], Date.now());
    if (failure.retriable) throw failure;
  }
  return "plain";
}

/** Treats a host whose response is not HTTP, or is too large, as one without a known API. */
function plainIfUnreadable(error: unknown): undefined {
  if (error instanceof ScmFailure && error.kind === "unreadable") return;
  throw error;
}

function isGitLab({ status, headers, text }: HostResponse): boolean {
  const { version, revision, message } = jsonFields(text);
  return (
    headers["x-gitlab-meta"] !== undefined ||
    (status === 200 && typeof version === "string" && typeof revision === "string") ||
    (status === 401 && message === "401 Unauthorized")
  );
}

function isGitHub({ status, headers, text }: HostResponse): boolean {
  return (
    headers["x-github-request-id"] !== undefined ||
    (status === 200 && jsonFields(text).verifiable_password_authentication !== undefined)
  );
}

function isGitea({ status, text }: HostResponse): boolean {
  const { max_response_items, default_paging_num, message } = jsonFields(text);
  if (status === 200)
    return Number.isSafeInteger(max_response_items) && Number.isSafeInteger(default_paging_num);
  // The response when the operator requires a sign-in for everything.
  return (status === 401 || status === 403) && message === "Only signed in user is allowed to call APIs.";
}

function jsonFields(text: string) {
  try {
    return readFields(JSON.parse(text));
  } catch {
    return {};
  }
}
