import { WorkFailure } from "../protocol/work-failure.ts";

interface Cause {
  readonly pattern: RegExp;
  readonly reason: string;
  /** What to do; said before git's own words. */
  readonly advice: string;
  readonly retriable?: boolean;
}

/** What git says in its C locale; the first that fits. */
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

/** So much of git's own words is told. */
const MOST_CHARACTERS = 500;

/**
 * The failure that git's complaints are.
 *
 * @param command git's command, such as "fetch"
 * @param complaints what it wrote to standard error, in the C locale
 * @param secrets masked in the message
 */
export function gitFailure(command: string, complaints: string, secrets: readonly string[]): WorkFailure {
  const cause = CAUSES.find(({ pattern }) => pattern.test(complaints));
  const advice = cause ? `: ${cause.advice}` : "";
  const words = told(complaints, secrets);
  return new WorkFailure(
    cause?.reason ?? "git_failed",
    `git ${command} failed${advice}${words && ` (${words})`}`,
    cause?.retriable ?? false,
  );
}

/** The last complaints, as one line. */
function told(complaints: string, secrets: readonly string[]): string {
  // Masked before it is cut: half a secret would not be found any more.
  const masked = secrets.reduce(masking, complaints);
  const lines = masked.split(/[\r\n]+/).filter((line) => line !== "");
  const telling = lines.filter((line) => /^(fatal|error|remote):/.test(line));
  const line = (telling.length > 0 ? telling : lines).join("; ").replace(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return line.trim().slice(-MOST_CHARACTERS);
}

function masking(text: string, secret: string): string {
  if (secret === "") return text;
  return text.replaceAll(secret, "***").replaceAll(encodeURIComponent(secret), "***");
}
