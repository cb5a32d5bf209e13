import { valueUnusable } from "../error.ts";
import { sourceOfPage, type Target } from "./context-url.ts";
import { isClonable, remoteForms, repositoryName } from "./remote.ts";

/** Facts about a page that its address contains. */
export interface ContextPage {
  /** The address; for https and http without the user name, which may be a secret. */
  readonly address: string;
  /** URL that git clones; for https and http without the user name. */
  readonly cloneUrl: string;
  /** In lower case, with the port unless it is the scheme's default. */
  readonly host: string;
  /** The owner or the groups as they are written, joined by slashes; empty for none. */
  readonly owner: string;
  /** The repository's name as it is written, without `.git`. */
  readonly repo: string;
  readonly target: Target;
  /** Undefined unless the page is that of a pull or merge request. */
  readonly pullRequest: PullRequestPage | undefined;
  /** The number of the issue as it is written; undefined unless the page is that of an issue. */
  readonly issue: string | undefined;
}

/** The page of a pull or merge request. */
export interface PullRequestPage {
  readonly number: number;
  /** URL of its main page, without a tab such as `/files`. */
  readonly url: string;
}

/** Characters that URL parsers treat differently. */
const ODD = /[\p{Cc}\p{White_Space}\\]/u;

const HTTP_USER = /^(https?:\/\/+)[^/?#]*@/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "ssh:": "22" };

/** The maximum number of a pull request (contract, EnvironmentQuestion.ReadRemote.pull_request). */
const MAX_NUMBER = 2_147_483_647;

/**
 * Reads the address of a page, or of a repository itself.
 *
 * @param field the address's path in the request
 * @throws DomainError VALUE_UNUSABLE, without repeating the address, if it is not that of a repository that runners
 *   clone, or contains a password
 */
export function readContextUrl(text: string, field: string): ContextPage {
  const unusable = (why: string) => valueUnusable(field, why);
  if (ODD.test(text) || !isClonable(text)) {
    throw unusable("it must be the address of a repository, or of a page of one, by https, http or ssh");
  }
  const asked = new URL(remoteForms(text).at(-1) ?? text);
  if (asked.password !== "") {
    throw unusable("it must not contain a password: store it as a host authentication token");
  }
  if (asked.protocol === "file:") throw unusable("it must be at a host, not in a folder");
  const address = text.replace(HTTP_USER, "$1");
  const { remoteUri, target } = sourceOfPage(address);
  // A more lenient parser must not find a user name either.
  if (URL.parse(remoteUri)?.username && /^https?:/i.test(remoteUri)) {
    throw unusable("its user name cannot be distinguished from its host");
  }
  const remote = new URL(remoteForms(remoteUri).at(-1) ?? remoteUri);
  const repo = repositoryName(remoteUri);
  if (repo === "") throw unusable("it names no repository");
  const segments = remote.pathname.split("/").filter((segment) => segment !== "");
  const port = remote.port === (DEFAULT_PORTS[remote.protocol] ?? "") ? "" : remote.port;
  return {
    address,
    cloneUrl: remoteUri,
    host: `${remote.hostname.toLowerCase()}${port && `:${port}`}`,
    owner: segments.slice(0, -1).join("/"),
    repo,
    target,
    ...pageOf(asked, remote, target, unusable),
  };
}

/** Returns the pull request or issue that a page shows. */
function pageOf(
  asked: URL,
  remote: URL,
  target: Target,
  unusable: (why: string) => Error,
): Pick<ContextPage, "pullRequest" | "issue"> {
  const rest = asked.pathname.slice(remote.pathname.length);
  const issue = target.kind === "head" ? /^(?:\/-)?\/issues\/(\d+)\/*$/.exec(rest)?.[1] : undefined;
  const [page = "", digits] = /^(?:\/-)?\/(?:pulls?|merge_requests)\/(\d+)/.exec(rest) ?? [];
  if (issue !== undefined && Number(issue) > MAX_NUMBER) throw unusable("no issue has such a number");
  if (target.kind !== "ref" || digits === undefined) return { pullRequest: undefined, issue };
  const number = Number(digits);
  if (number > MAX_NUMBER) throw unusable("no pull request has such a number");
  return { pullRequest: { number, url: `${remote.href}${page}` }, issue };
}

/** Returns the spellings under which projects may store the repository of a page. */
export function spellingsOf({ cloneUrl, host }: Pick<ContextPage, "cloneUrl" | "host">): readonly string[] {
  const url = new URL(remoteForms(cloneUrl).at(-1) ?? cloneUrl);
  const path = url.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const isSsh = url.protocol === "ssh:";
  const users = isSsh ? ["git@", url.username && `${url.username}@`] : ["git@"];
  const ssh = users.map((user) => `ssh://${user}${host}${path}`);
  const short = users.map((user) => `${user}${host}:${path.slice(1)}`);
  const web = `${host}${path}`;
  // A port belongs to one scheme, so only that scheme is possible.
  if (/:\d+$/.test(host)) return withSuffixes(cloneUrl, isSsh ? ssh : [`${url.protocol}//${web}`]);
  return withSuffixes(cloneUrl, [`https://${web}`, `http://${web}`, ...ssh, ...short]);
}

function withSuffixes(cloneUrl: string, bases: readonly string[]): readonly string[] {
  return [...new Set([cloneUrl, ...bases.flatMap((base) => [base, `${base}.git`])])];
}
