import { giteaEventName } from "./gitea-pull-request.ts";
import { PayloadField, UnsupportedPayload } from "./payload-field.ts";
import { parseJsonBody } from "./webhook-body.ts";

/** A source-control host's message about the checks of one commit. */
export interface CheckEvent {
  /** Every URL that the host gives for the repository. */
  readonly repositoryUrls: readonly string[];
  readonly headSha: string;
}

/** Paths of the commit in payloads of GitHub, Gitea and Forgejo, by the name of the event. */
const COMMITS: ReadonlyMap<string, readonly string[]> = new Map([
  ["status", ["sha"]],
  ["check_run", ["check_run", "head_sha"]],
  ["check_suite", ["check_suite", "head_sha"]],
  ["workflow_run", ["workflow_run", "head_sha"]],
]);

const URLS = ["clone_url", "html_url", "ssh_url", "git_url"] as const;
const GITLAB_URLS = ["git_http_url", "web_url", "git_ssh_url"] as const;
const URL_MAX_CHARACTERS = 2_048;

/**
 * Parses a message about checks. The payload is untrusted: one that cannot be read is treated as
 * another kind of message, and nothing throws.
 * @param headers by lower-case name
 * @param body the raw body, of a verified delivery
 */
export function parseCheckEvent(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): CheckEvent | undefined {
  const isGitLab = headers["x-gitlab-event"] === "Pipeline Hook";
  const commit = isGitLab
    ? ["object_attributes", "sha"]
    : COMMITS.get(giteaEventName(headers) ?? headers["x-github-event"] ?? "");
  if (!commit) return undefined;
  const document = parseJsonBody(body);
  if ("malformed" in document) return undefined;
  try {
    const payload = new PayloadField(document.value);
    const repository = payload.at(isGitLab ? "project" : "repository");
    const names = isGitLab ? GITLAB_URLS : URLS;
    return {
      repositoryUrls: names.flatMap((name) => repository.at(name).optional()?.name(URL_MAX_CHARACTERS) ?? []),
      headSha: payload.at(...commit).commit(),
    };
  } catch (error) {
    if (error instanceof UnsupportedPayload) return undefined;
    throw error;
  }
}
