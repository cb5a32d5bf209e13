import { ScmFailure } from "./failure.ts";
import { gitHubRoot } from "./github.ts";
import { gitLabRoot } from "./gitlab.ts";
import type { HostResponse } from "./host-request.ts";
import { failureOfResponse } from "./response-failure.ts";
import { readFields } from "./response-fields.ts";

/** The API of a host; `plain` when it is none of the known ones. */
export type HostKind = "github" | "gitlab" | "plain";

/** Returns the kind that a host's name indicates; undefined when it indicates none, or both. */
export function hostKindByName(host: string): HostKind | undefined {
  const isGitHub = host.includes("github");
  const isGitLab = host.includes("gitlab");
  if (isGitHub === isGitLab) return undefined;
  return isGitHub ? "github" : "gitlab";
}

/**
 * Finds the kind of a host from its responses. Asked without a token, as it is
 * not known yet who would receive it; both hosts can be identified by how they
 * refuse.
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

/** Treats a host whose response is not HTTP, or is too large, as one that speaks neither API. */
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

function jsonFields(text: string) {
  try {
    return readFields(JSON.parse(text));
  } catch {
    return {};
  }
}
