import { remoteForms } from "./remote.ts";

/** The transports by which one repository is reached, with the ports that need no mention. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = {
  "https:": "443",
  "http:": "80",
  "ssh:": "22",
  "git:": "9418",
};

/**
 * `host[:port]/path` of the repository behind a remote or web URL, alike for
 * every way to write it: by https, http, ssh, git or in the scp form, with or
 * without a user, the default port or `.git`. Case is folded in the path too:
 * the hosts whose events are read tell no two repositories apart by it.
 * Undefined for what is at no such host, a local path or `file:` among it.
 */
export function repositoryIdentity(remote: string): string | undefined {
  const url = URL.parse(remoteForms(remote).at(-1) ?? remote);
  const defaultPort = url ? DEFAULT_PORTS[url.protocol] : undefined;
  if (!url || defaultPort === undefined || url.hostname === "") return undefined;
  const segments = url.pathname.split("/").filter((segment) => segment !== "");
  const path = segments
    .join("/")
    .toLowerCase()
    .replace(/\.git$/u, "");
  if (path === "" || path.endsWith("/")) return undefined;
  const port = url.port === "" || url.port === defaultPort ? "" : `:${url.port}`;
  return `${url.hostname.toLowerCase()}${port}/${path}`;
}

/** Lower-case host name behind a remote or web URL; undefined where `repositoryIdentity` is. */
export function repositoryHost(remote: string): string | undefined {
  return repositoryIdentity(remote)?.split("/")[0]?.replace(/:\d+$/u, "");
}
