import { maskSecrets } from "../../domain/secrets.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

interface Cause {
  readonly pattern: RegExp;
  readonly reason: string;
  /** The advice for the user, printed before git's own message. */
  readonly advice: string;
  readonly retriable?: boolean;
}

/** Git's messages in the C locale; the first match wins. */
const CAUSES: readonly Cause[] = [
  {
    pattern: /could not read (Username|Password)|Authentication failed|Permission denied \(|error: 401/,
    reason: "git_unauthorized",
    advice: "the remote wants a credential: store a host authentication token that may use the repository",
  },
  {
    pattern: /returned error: 403/,
    reason: "git_forbidden",
    advice: "the credential may not do this: give its token more rights",
  },
  {
    pattern: /returned error: 30\d/,
    reason: "remote_moved",
    advice: "the remote answers with a redirect: use the address that it leads to",
  },
  {
    pattern: /repository '.*' not found|returned error: (404|410)|not appear to be a git repository/,
    reason: "repository_not_found",
    advice: "there is no such repository, or none that the credential may see",
  },
  {
    pattern: /couldn't find remote ref|not our ref|unadvertised object/,
    reason: "revision_not_found",
    advice: "the remote has no such branch, tag, commit or pull request",
  },
  {
    pattern:
      /Could not resolve host|[Ff]ailed to connect|Couldn't connect|Connection (refused|reset|closed|timed out)|timed out|error: 5\d\d|early EOF|hung up unexpectedly|unexpected disconnect|transfer closed/,
    reason: "remote_unreachable",
    advice: "the remote could not be reached",
    retriable: true,
  },
  {
    pattern: /No space left on device|Disk quota exceeded/,
    reason: "disk_full",
    advice: "the runner's disk is full",
    retriable: true,
  },
];

/** Maximum length of git's own message in a report, in characters. */
const MAX_REPORTED_CHARACTERS = 500;

/**
 * Returns the failure for git's error output.
 *
 * @param command git's command, such as "fetch"
 * @param stderr standard error in the C locale
 * @param secrets texts to mask in the message
 */
export function gitFailure(command: string, stderr: string, secrets: readonly string[]): WorkFailure {
  const cause = CAUSES.find(({ pattern }) => pattern.test(stderr));
  const advice = cause ? `: ${cause.advice}` : "";
  const words = lastLines(stderr, secrets);
  return new WorkFailure(
    cause?.reason ?? "git_failed",
    `git ${command} failed${advice}${words && ` (${words})`}`,
    cause?.retriable ?? false,
  );
}

/** Returns the last lines of the error output as one line. */
function lastLines(stderr: string, secrets: readonly string[]): string {
  const lines = maskSecrets(stderr, secrets)
    .split(/[\r\n]+/)
    .filter((line) => line !== "");
  const telling = lines.filter((line) => /^(fatal|error|remote):/.test(line));
  const line = (telling.length > 0 ? telling : lines).join("; ").replace(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return line.trim().slice(-MAX_REPORTED_CHARACTERS);
}
